# notewell as a server for one folder of notes: see compose.yaml and docs/install.md.
FROM python:3.13-slim AS build
WORKDIR /checkout
COPY pyproject.toml README.md LICENSE ./
COPY model model
COPY plugins plugins
COPY src src
RUN python -m venv /opt/notewell \
 && /opt/notewell/bin/pip install --no-cache-dir ./model ".[mcp,postgres,documents]"

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 notewell \
 && mkdir /notes \
 && chown notewell:notewell /notes
COPY --from=build /opt/notewell /opt/notewell
# The notes belong to a user of the host, whose files notewell would otherwise not believe nor write beside.
ENV PATH=/opt/notewell/bin:$PATH NOTEWELL_TRUSTED_FOLDERS=/notes
USER notewell
WORKDIR /notes
EXPOSE 8765
# The page is served without the token and holds no notes.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/', timeout=4)"]
ENTRYPOINT ["notewell"]
CMD ["serve", "--host", "0.0.0.0"]
