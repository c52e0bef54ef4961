"""What people bring, made by hand: exports in `exports/`, and small Word documents, PDFs and
archives.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from notewell.sources.imports.bundle import Bundle
from notewell.sources.imports.items import Item

EXPORTS = Path(__file__).parent / "exports"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STYLES = (
    f'<w:styles {_W}><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    "</w:styles>"
)
CORE = """<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t">\
<dc:title>Rules of the house</dc:title>
<dcterms:modified>2026-02-09T10:00:00Z</dcterms:modified></cp:coreProperties>"""
BODY = f"""<?xml version="1.0"?><w:document {_W}><w:body>
<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Heating</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">The boiler </w:t></w:r>
<w:r><w:t>starts at 4.</w:t><w:br/><w:t>Never later.</w:t></w:r>
<w:del><w:r><w:delText>deleted words</w:delText></w:r></w:del>\
<w:r><w:instrText>field words</w:instrText></w:r></w:p>
<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>Valve A</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>Valve B</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>room</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>degrees</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:p><w:r><w:t>hall</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>17</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
</w:body></w:document>"""


def items(place: Path) -> list[Item]:
    """What a bundle has in it."""
    return [item for _, item in Bundle(str(place)).items()]


def words(found: Sequence[Item]) -> str:
    """All the words of some items."""
    return "\n".join("\n".join([item.title, *(part.text for part in item.parts)]) for item in found)


def zipped(files: Mapping[str, str | bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 2, 1, 10, 0, 0)), data, method)
    return out.getvalue()


def docx(body: str = BODY) -> bytes:
    """A Word document."""
    files = {"[Content_Types].xml": "<Types/>", "word/document.xml": body}
    return zipped({**files, "word/styles.xml": STYLES, "docProps/core.xml": CORE})


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with a line of text on each page, as the format wants it."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
    ]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * n} 0 R /MediaBox [0 0 "
            "595 842] >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({title}) /CreationDate (D:20260110090000Z) >>")
    out, places = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = (
        f"trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\nstartxref\n"
        f"{len(out)}\n%%EOF\n"
    )
    return f"{out}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
