// Where one is: the part of the address after #, as a view with its values.

const VIEWS = new Set(["home", "search", "note", "change", "time", "lab"]);

// "#/note/memory/a.md?line=3" is the view note of memory/a.md with line 3.
export function parse(hash) {
  const text = hash.startsWith("#/") ? hash.slice(2) : "";
  const [place, query = ""] = [text.split("?")[0], text.includes("?") ? text.slice(text.indexOf("?") + 1) : ""];
  const [name, ...rest] = place.split("/");
  const view = VIEWS.has(name) ? name : "home";
  return { view, path: rest.map(decoded).join("/"), given: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function hash(view, given = {}, path = "") {
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  const place = path ? `/${path.split("/").map(encodeURIComponent).join("/")}` : "";
  const asked = query.toString();
  return `#/${view === "home" ? "" : view}${place}${asked ? `?${asked}` : ""}`;
}

// A citation such as memory/a.md#L3-L9 as the address of its note at that line.
export function noteAt(citation) {
  const match = /^(?<path>.*)#L(?<line>\d+)(-L\d+)?$/u.exec(citation);
  return match ? hash("note", { line: match.groups.line }, match.groups.path) : hash("note", {}, citation);
}
