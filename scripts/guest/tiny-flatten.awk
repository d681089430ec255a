# Flattens one YAML or JSON document into `path<TAB>value` lines, which is all that the guest needs to read a seed:
#
#   {"ssh_keys": {"a": "x\ny"}}      ->   /ssh_keys/a   x\ny
#   users: [{name: bob}]             ->   /users/0/name bob
#
# In a value, backslash, newline and tab are written \\ \n \t, so `printf %b` gives it back. Nulls and empty
# collections are empty values. Nothing is printed for a document that cannot be read; then the exit status is 1.
# Runs in busybox awk, mawk and gawk (in the C locale). It knows block and flow collections, plain, quoted and block
# scalars, comments; it skips tags and anchors, and knows neither aliases, nor `? ` keys, nor several documents.

{ sub(/\r$/, ""); line[++lines] = $0 }

END {
  cur = 1
  node("", 0)
  if (!failed && more()) fail("unexpected text")
  if (failed) exit 1
  for (i = 1; i <= outs; i++) print out[i]
}

function fail(why) {
  if (!failed) print "line " cur ": " why | "cat >&2"
  failed = 1
  cur = lines + 1
}

function put(path, value) {
  gsub(/\\/, "\\\\&", value)
  gsub(/\n/, "\\n", value)
  gsub(/\t/, "\\t", value)
  out[++outs] = path "\t" value
}

# Moves to the next line that says something; 0 at the end.
function more() {
  while (cur <= lines && line[cur] ~ /^[ \t]*(#.*)?$|^(---|\.\.\.)[ \t]*(#.*)?$|^%/) cur++
  return cur <= lines
}

function indent(s) { match(s, /[^ ]|$/); return RSTART - 1 }
function trim(s) { sub(/^[ \t\n]+/, "", s); sub(/[ \t\n]+$/, "", s); return s }
function is_item(s) { return s ~ /^-([ \t]|$)/ }
function is_blank(s) { return s ~ /^[ \t]*(#.*)?$/ }

# Splits `key: rest` into the globals key and rest; 0 when s is no such thing.
function is_pair(s, at) {
  if (s ~ /^"/) {
    if (!match(s, /^"([^"\\]|\\.)*"[ \t]*:([ \t]|$)/)) return 0
    text = s; pos = 1; key = double_quoted()
    rest = trim(substr(s, index(substr(s, pos), ":") + pos))
    return 1
  }
  if (s ~ /^'/) {
    if (!match(s, /^'([^']|'')*'[ \t]*:([ \t]|$)/)) return 0
    text = s; pos = 1; key = single_quoted()
    rest = trim(substr(s, index(substr(s, pos), ":") + pos))
    return 1
  }
  if (s ~ /^[]{}[,#&*!|>%@`]/ || is_item(s) || !match(s, /:([ \t]|$)/)) return 0
  at = RSTART
  if (match(s, /[ \t]#/) && RSTART < at) return 0
  key = trim(substr(s, 1, at - 1))
  rest = trim(substr(s, at + 1))
  return 1
}

# The node that starts on the current line, if that is indented by min or more.
function node(path, min,   ind, count, s, k) {
  if (!more() || (ind = indent(line[cur])) < min) { if (path != "") put(path, ""); return }
  s = substr(line[cur], ind + 1)
  if (is_item(s)) {
    for (count = 0; more() && indent(line[cur]) == ind && is_item(substr(line[cur], ind + 1)); count++) {
      line[cur] = sprintf("%" (ind + 1) "s", "") substr(line[cur], ind + 2)
      if (is_blank(line[cur])) cur++
      node(path "/" count, ind + 1)
    }
    return
  }
  if (!is_pair(s)) { value(path, s, min - 1); return }
  while (more() && indent(line[cur]) == ind && is_pair(substr(line[cur], ind + 1))) {
    k = key
    value(path "/" k, rest, ind)
  }
}

# What stands after `key:` or `- ` on the current line; base is the indentation of that parent.
function value(path, s, base) {
  while (match(s, /^[!&][^ \t]*([ \t]+|$)/)) s = substr(s, RLENGTH + 1)
  if (is_blank(s)) {
    cur++
    if (more() && indent(line[cur]) == base && is_item(substr(line[cur], base + 1))) node(path, base)
    else node(path, base + 1)
  }
  else if (s ~ /^[|>][-+0-9]*[ \t]*(#.*)?$/) block(path, s, base)
  else if (s ~ /^[{["']/) flow(path, s)
  else plain(path, s, base)
}

function plain(path, s, base) {
  for (;;) {
    sub(/[ \t]+#.*$/, "", s)
    cur++
    if (cur > lines || is_blank(line[cur]) || indent(line[cur]) <= base || is_pair(trim(line[cur]))) break
    s = trim(s) " " trim(line[cur])
  }
  put(path, known(trim(s)))
}

function known(s) { return s ~ /^(~|null|Null|NULL)$/ ? "" : s }

function block(path, s, base,   folded, keep, depth, text_, tail, l, first) {
  folded = s ~ /^>/
  sub(/[ \t]*#.*$/, "", s)
  keep = s ~ /\+/ ? "all" : (s ~ /-/ ? "none" : "one")
  depth = match(s, /[1-9]/) ? (base < 0 ? 0 : base) + substr(s, RSTART, 1) : 0
  first = 1
  for (cur++; cur <= lines; cur++) {
    l = line[cur]
    if (l ~ /^ *$/) { tail = tail "\n"; continue }
    if (!depth) depth = indent(l) > base ? indent(l) : base + 1
    if (indent(l) < depth) break
    l = substr(l, depth + 1)
    if (first) text_ = tail l
    else if (folded && l !~ /^[ \t]/) text_ = text_ (tail == "\n" ? " " : substr(tail, 2)) l
    else text_ = text_ tail l
    tail = "\n"
    first = 0
  }
  if (keep == "all") text_ = text_ tail
  else if (keep == "one" && !first) text_ = text_ "\n"
  put(path, text_)
}

# Flow collections and quoted scalars may span lines: read them from one text, then count the lines that they took.
function flow(path, s,   i, used) {
  text = s
  for (i = cur + 1; i <= lines; i++) text = text "\n" line[i]
  pos = 1
  flow_value(path)
  if (failed) return
  used = substr(text, 1, pos - 1)
  cur += gsub(/\n/, "", used)
  s = substr(text, pos)
  sub(/\n.*/, "", s)
  if (!is_blank(s)) fail("text after a value: " s)
  else cur++
}

function flow_space() {
  while (match(substr(text, pos), /^([ \t\n]+|#[^\n]*)/)) pos += RLENGTH
  return substr(text, pos, 1)
}

function flow_value(path,   c, k, count) {
  c = flow_space()
  if (c == "{") {
    for (pos++; !failed && (c = flow_space()) != "}"; count++) {
      if (c == ",") { pos++; continue }
      k = flow_scalar()
      if (flow_space() == ":") { pos++; flow_value(path "/" k) }
      else put(path "/" k, "")
    }
    pos++
    if (!count) put(path, "")
  }
  else if (c == "[") {
    for (pos++; !failed && (c = flow_space()) != "]";) {
      if (c == ",") pos++
      else flow_value(path "/" (count++ + 0))
    }
    pos++
    if (!count) put(path, "")
  }
  else if (c == "," || c == "}" || c == "]") put(path, "")
  else put(path, c == "\"" || c == "'" ? flow_scalar() : known(flow_scalar()))
}

function flow_scalar(   c, r) {
  c = substr(text, pos, 1)
  if (c == "\"") return double_quoted()
  if (c == "'") return single_quoted()
  r = substr(text, pos)
  if (!match(r, /[][,{}\n]|:[ \t\n]|[ \t]#/) || RSTART == 1) { fail("a value is missing or never ends"); return "" }
  pos += RSTART - 1
  return trim(substr(r, 1, RSTART - 1))
}

function single_quoted(   r) {
  r = substr(text, pos)
  if (!match(r, /^'([^']|'')*'/)) { fail("a quote is never closed"); return "" }
  pos += RLENGTH
  r = substr(r, 2, RLENGTH - 2)
  gsub(/''/, "'", r)
  gsub(/[ \t]*\n[ \t]*/, " ", r)
  return r
}

function double_quoted(   r, s, c) {
  pos++
  for (;;) {
    s = substr(text, pos)
    if (!match(s, /["\\]/)) { fail("a quote is never closed"); return "" }
    c = substr(s, RSTART, 1)
    pos += RSTART
    s = substr(s, 1, RSTART - 1)
    gsub(/[ \t]*\n[ \t]*/, " ", s)
    r = r s
    if (c == "\"") return r
    r = r escaped()
  }
}

function escaped(   c, at, code, low) {
  c = substr(text, pos++, 1)
  if (c == "u") {
    code = hex(4)
    if (code >= 55296 && code < 56320 && substr(text, pos, 2) == "\\u") {
      pos += 2
      low = hex(4)
      code = 65536 + (code - 55296) * 1024 + low - 56320
    }
    return utf8(code)
  }
  if (c == "x") return utf8(hex(2))
  if (c == "\n") { match(substr(text, pos), /^[ \t]*/); pos += RLENGTH; return "" }
  at = index("nrtbf0ae", c)
  return at ? substr("\n\r\t\b\f?\a\033", at, 1) : c
}

function hex(digits,   n) {
  for (n = 0; digits > 0; digits--) n = n * 16 + index("0123456789abcdef", tolower(substr(text, pos++, 1))) - 1
  return n
}

function utf8(code) {
  if (code < 128) return sprintf("%c", code)
  if (code < 2048) return sprintf("%c%c", 192 + int(code / 64), 128 + code % 64)
  if (code < 65536) return sprintf("%c%c%c", 224 + int(code / 4096), 128 + int(code / 64) % 64, 128 + code % 64)
  return sprintf("%c%c%c%c", 240 + int(code / 262144), 128 + int(code / 4096) % 64, 128 + int(code / 64) % 64, 128 + code % 64)
}
