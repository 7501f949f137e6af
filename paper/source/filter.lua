-- Numbers figures, tables and sections, resolves @fig-, @tbl- and @sec- references, and writes
-- each figure and table the way the output wants it. Runs before citeproc, so that what is
-- left as a citation is one. Input: the Markdown made by deathmatch/paper/build.py.
--
-- Metadata read: `figures` (folder of the charts), `text-width-pt` and `text-height-pt` of the
-- PDF's page.

local html = FORMAT:match("html") ~= nil
local kinds = { fig = "Figure", tbl = "Table", sec = "Section" }
-- Sections of an appendix are numbered A, A.1, …, and called by another name.
local appendix, appendices = false, {}
local number, known, missing = {}, {}, {}
local figures, page

local function fail(what)
  io.stderr:write("deathmatch: " .. what .. "\n")
  os.exit(1)
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

-- Untrusted text ------------------------------------------------------------------------------

-- Text may come from other people's datasets. build.py turns raw HTML off; this filter removes
-- images, links that run a script, and attributes. The paper's own HTML is found by its name, in
-- a separate file.
local own

local function tamed(element)
  for name in pairs(element.attributes) do
    if name:lower():match("^on") then element.attributes[name] = nil end
  end
  return element
end

local tame = {
  Image = function(image) return image.caption end,
  Link = function(link)
    local scheme = link.target:lower():gsub("[%c%s]", ""):match("^([^/?#]*):")
    if scheme and scheme ~= "http" and scheme ~= "https" then return link.content end
    return tamed(link)
  end,
  Code = tamed, CodeBlock = tamed, Div = tamed, Header = tamed, Span = tamed,
}

-- Numbering -------------------------------------------------------------------------------

local counts = { fig = 0, tbl = 0 }
local section = {}

local function define(id, text)
  if known[id] then fail("duplicate-label " .. id) end
  known[id] = true
  number[id] = text
end

local count = {
  Header = function(header)
    if header.classes:includes("unnumbered") then
      known[header.identifier] = true
      return
    end
    if header.level == 1 and header.classes:includes("appendix") and not appendix then
      appendix, section = true, {}
    end
    for level = header.level + 1, #section do section[level] = nil end
    for level = 1, header.level do section[level] = section[level] or 0 end
    section[header.level] = section[header.level] + 1
    local text = table.concat(section, ".")
    if appendix then text = text:gsub("^%d+", function(n) return string.char(64 + n) end) end
    appendices[header.identifier] = appendix
    define(header.identifier, text)
  end,
  Div = function(div)
    local kind = div.identifier:match("^(%a+)-")
    if (div.classes:includes("figure") or div.classes:includes("table")) and counts[kind] then
      counts[kind] = counts[kind] + 1
      define(div.identifier, tostring(counts[kind]))
    elseif div.identifier ~= "" then
      known[div.identifier] = true
    end
  end,
  Span = function(span) known[span.identifier] = true end,
}

-- References ------------------------------------------------------------------------------

local function reference(id)
  local kind = kinds[id:match("^(%a+)-")]
  if not number[id] then
    missing[#missing + 1] = "@" .. id
    return pandoc.Str("?")
  end
  if appendices[id] then kind = "Appendix" end
  return pandoc.Link({ pandoc.Str(kind .. "\u{a0}" .. number[id]) }, "#" .. id, "", { class = "ref" })
end

local resolve = {
  Cite = function(cite)
    local links = pandoc.Inlines({})
    for index, citation in ipairs(cite.citations) do
      if not citation.id:match("^fig%-") and not citation.id:match("^tbl%-")
        and not citation.id:match("^sec%-") then
        return nil
      end
      if index > 1 then
        links:extend({ pandoc.Str(index == #cite.citations and " and" or ","), pandoc.Space() })
      end
      links:insert(reference(citation.id))
    end
    return links
  end,
  Link = function(link)
    local id = link.target:match("^#(.+)")
    if id and not known[id] then missing[#missing + 1] = "#" .. id end
  end,
}

-- Figures ---------------------------------------------------------------------------------

local function caption(div)
  local inlines = pandoc.utils.blocks_to_inlines(div.content, { pandoc.Space() })
  local differs = div.attributes.differs or ""
  if differs ~= "" then
    inlines:extend({ pandoc.Space(), pandoc.Span({ pandoc.Str(differs) }, { class = "measured" }) })
  end
  local source = "Source: " .. div.attributes.source .. "."
  if html then
    inlines:extend({ pandoc.Space(), pandoc.Span({ pandoc.Str(source) }, { class = "source" }) })
  elseif FORMAT == "typst" then
    inlines:extend({ pandoc.RawInline("typst", " #source["), pandoc.Str(source),
      pandoc.RawInline("typst", "]") })
  end
  return inlines
end

local function html_caption(kind, div)
  local link = pandoc.Link({ pandoc.Str(kinds[kind] .. "\u{a0}" .. number[div.identifier]) },
    "#" .. div.identifier, "permanent link", { class = "permalink" })
  local inlines = pandoc.Inlines({ link, pandoc.Str("."), pandoc.Space() })
  inlines:extend(caption(div))
  return {
    pandoc.RawBlock("html", "<figcaption>"), pandoc.Plain(inlines),
    pandoc.RawBlock("html", "</figcaption>"),
  }
end

local function escape(text)
  return (text:gsub("&", "&amp;"):gsub('"', "&quot;"):gsub("<", "&lt;"))
end

local function data_url(svg)
  local encoded = svg:gsub("[^%w%-_%.~ =:/,;()]", function(c)
    return string.format("%%%02X", c:byte())
  end)
  return "data:image/svg+xml," .. encoded
end

local function figure(div)
  local id, alt = div.identifier, div.attributes.alt
  local stem = figures .. "/" .. id
  local svg = read(stem .. ".svg")
  if not svg then fail("missing-figure " .. id) end
  local width, height = svg:match('width="([%d.]+)"'), svg:match('height="([%d.]+)"')
  if html then
    local blocks = pandoc.Blocks({ pandoc.RawBlock("html", string.format(
      '<figure id="%s" class="figure"><div class="chart" role="img" aria-label="%s">'
        .. '<img src="%s" alt="%s" width="%s" height="%s"></div>'
        .. '<script type="application/json">%s</script>',
      id, escape(alt), data_url(svg), escape(alt), width, height,
      read(stem .. ".json"):gsub("</", "<\\/"):gsub("<!", "<\\u0021"))) })
    blocks:extend(html_caption("fig", div))
    blocks:insert(pandoc.RawBlock("html", "</figure>"))
    return blocks
  end
  -- 0.74 pt a pixel sets the theme's 12 px type at about 9 pt.
  local scale = math.min(0.74, page.width / width, page.height * 0.85 / height)
  local inlines = pandoc.Inlines({ pandoc.RawInline("typst", string.format(
    '#figure(image("%s.pdf", width: %.1fpt, alt: %s), caption: [',
    id, width * scale, '"' .. alt:gsub('[\\"]', "\\%0") .. '"')) })
  inlines:extend(caption(div))
  inlines:insert(pandoc.RawInline("typst", "]) <" .. id .. ">"))
  return pandoc.Para(inlines)
end

local prose = 30 -- characters beyond which a column wraps

-- Tables ----------------------------------------------------------------------------------

local function length(text) return utf8.len(text) or #text end

-- Calls visit(cell, column, is_heading, row) for each cell of one column in the rows whose columns
-- are certain: all but the lower rows of a heading with spans.
local function each_cell(tab, visit)
  local rows = pandoc.List({})
  rows:extend(tab.head.rows)
  for _, body in ipairs(tab.bodies) do
    rows:extend(body.head)
    rows:extend(body.body)
  end
  for position, row in ipairs(rows) do
    local column = 1
    for _, cell in ipairs(row.cells) do
      if cell.col_span == 1 and (position == 1 or #row.cells == #tab.colspecs) then
        visit(cell, column, position <= #tab.head.rows, position)
      end
      column = column + cell.col_span
    end
  end
end

-- Returns, per column, the longest cell and the longest word in characters. A heading may
-- wrap, so it counts by its words.
local function measures(tab)
  local cells, words = {}, {}
  for column in ipairs(tab.colspecs) do cells[column], words[column] = 1, 1 end
  each_cell(tab, function(cell, column, heading)
    local text = pandoc.utils.stringify(cell.contents)
    for word in text:gmatch("[^ \n]+") do
      words[column] = math.max(words[column], length(word))
    end
    cells[column] = math.max(cells[column], words[column], heading and 1 or length(text))
  end)
  return cells, words
end

-- Breaks headings to their columns' widths, so that they do not widen them.
local function wrap_headings(tab, cells)
  each_cell(tab, function(cell, column, heading)
    if not heading then return end
    local used = 0
    cell.contents = cell.contents:walk({
      Inlines = function(inlines)
        local wrapped = pandoc.Inlines({})
        for index, inline in ipairs(inlines) do
          local space = inline.t == "Space" or inline.t == "SoftBreak"
          local coming = inlines[index + 1] and length(pandoc.utils.stringify(inlines[index + 1]))
          if space and coming and used + 1 + coming > cells[column] then
            wrapped:insert(pandoc.LineBreak())
            used = 0
          else
            wrapped:insert(inline)
            used = used + length(pandoc.utils.stringify(inline))
          end
        end
        return wrapped
      end,
    })
  end)
end

-- Columns that wrap, from which length on; narrower ones are tried only if the table needs them.
local wraps = { 30, 22, 16, 12 }
local smallest = 6.5 -- pt

-- Adds to wrapped columns' least widths the room that is free, all in characters, so that the
-- table has about the fewest lines: in small steps, each to the column that saves most. A row
-- is as high as its highest cell, which a power mean approximates smoothly.
local function share(tab, widths, free)
  local rows, steps, power = {}, 60, 6
  each_cell(tab, function(cell, column, heading, row)
    if heading or not widths[column] then return end
    rows[row] = rows[row] or {}
    rows[row][column] = length(pandoc.utils.stringify(cell.contents))
  end)
  local function lines()
    local sum = 0
    for _, row in pairs(rows) do
      local height = 1
      for column, text in pairs(row) do height = height + (text / widths[column]) ^ power end
      sum = sum + height ^ (1 / power)
    end
    return sum
  end
  local step = free / steps
  for _ = 1, steps do
    local best, fewest
    for column in ipairs(tab.colspecs) do
      if widths[column] then
        widths[column] = widths[column] + step
        local found = lines()
        widths[column] = widths[column] - step
        if not fewest or found < fewest then best, fewest = column, found end
      end
    end
    if best then widths[best] = widths[best] + step end
  end
end

-- A column of prose wraps; the others keep their width. The type shrinks until the widest rows
-- fit; a table that is too wide then wraps shorter columns too.
local function fit(tab)
  local cells, words = measures(tab)
  local gap, em = 2.6, 0.52 -- a cell's insets in characters; a character's mean width
  local size, fixed, limit
  for _, wrap in ipairs(wraps) do
    limit = wrap
    local need = 0
    fixed = 0
    for column, cell in ipairs(cells) do
      if cell > wrap then
        need = need + gap + math.max(wrap, words[column])
      else
        need = need + gap + cell
        fixed = fixed + gap + cell
      end
    end
    size = math.min(8.5, page.width / need / em)
    if size >= smallest then break end
  end
  if size < 8.5 then wrap_headings(tab, cells) end
  -- A wrapped column has room for its longest word, and its share of what is left.
  local unit = em * size / page.width
  local free, widths = 1 / unit - fixed, {}
  for column, cell in ipairs(cells) do
    if cell > limit then
      widths[column] = words[column]
      free = free - (words[column] + gap)
    end
  end
  share(tab, widths, math.max(0, free))
  for column, width in pairs(widths) do
    tab.colspecs[column] = { tab.colspecs[column][1], (width + gap) * unit }
  end
  return size
end

local function make_table(div)
  local tab = pandoc.read(own[div.identifier], "html").blocks:find_if(function(b) return b.t == "Table" end)
  tab = tab:walk({
    Str = function(text)
      local id = text.text:match("^@(%l+%-[%w-]+)$")
      if id and kinds[id:match("^(%a+)-")] then return reference(id) end
    end,
  })
  if html then
    local cells = measures(tab)
    for index, spec in ipairs(tab.colspecs) do tab.colspecs[index] = { spec[1], nil } end
    each_cell(tab, function(cell, column)
      if cells[column] > prose then cell.classes:insert("prose") end
    end)
    local blocks = pandoc.Blocks({ pandoc.RawBlock("html",
      '<figure id="' .. div.identifier .. '" class="table">') })
    blocks:extend(html_caption("tbl", div))
    blocks:extend({ pandoc.RawBlock("html", '<div class="scroll" tabindex="0">'), tab,
      pandoc.RawBlock("html", "</div></figure>") })
    return blocks
  end
  local size = fit(tab)
  -- A short table is kept together.
  local text = 0
  each_cell(tab, function(cell) text = text + length(pandoc.utils.stringify(cell.contents)) end)
  local whole = #tab.bodies[1].body <= 15 and text < 1200
  tab.caption = { long = { pandoc.Plain(caption(div)) } }
  tab.attr = pandoc.Attr(div.identifier)
  return {
    pandoc.RawBlock("typst", string.format("#[%s#show table: set text(size: %.2fpt)",
      whole and "#show figure.where(kind: table): set block(breakable: false)\n" or "", size)),
    tab,
    pandoc.RawBlock("typst", "]"),
  }
end

local write = {
  Header = function(header)
    if html and number[header.identifier] then
      header.content:insert(1, pandoc.Space())
      header.content:insert(1, pandoc.Span({ pandoc.Str(number[header.identifier]) },
        { class = "header-section-number" }))
      return header
    end
  end,
  Div = function(div)
    if FORMAT == "typst" and div.classes:includes("appendices") then
      local blocks = pandoc.Blocks({ pandoc.RawBlock("typst", "#pagebreak(weak: true)") })
      blocks:extend(div.content)
      blocks:insert(pandoc.RawBlock("typst", "#counter(heading).update(0)\n"
        .. '#set heading(numbering: "A.1", supplement: [Appendix])'))
      return blocks
    end
    if FORMAT == "typst" and div.classes:includes("contents") then
      return pandoc.RawBlock("typst", "#contents()")
    end
    if div.classes:includes("figure") then return figure(div) end
    if div.classes:includes("table") then return make_table(div) end
    if FORMAT == "typst" and (div.classes:includes("note") or div.classes:includes("warning")) then
      local blocks = pandoc.Blocks({ pandoc.RawBlock("typst", "#remark[") })
      blocks:extend(div.content)
      blocks:insert(pandoc.RawBlock("typst", "]"))
      return blocks
    end
    if div.classes:includes("code") then
      if not html then return {} end
      local blocks = pandoc.Blocks({ pandoc.RawBlock("html",
        '<details class="code"><summary>Code</summary>') })
      blocks:extend(div.content)
      blocks:insert(pandoc.RawBlock("html", "</details>"))
      return blocks
    end
  end,
}

-- Typst would draw two hyphens as a dash, and pandoc before 3.9 leaves them so.
local hyphens = {
  Str = function(str)
    if not str.text:match("%-%-") then return nil end
    local inlines = pandoc.Inlines({})
    for text, run in str.text:gmatch("([^-]*)(%-*)") do
      if text ~= "" then inlines:insert(pandoc.Str(text)) end
      if run ~= "" then inlines:insert(pandoc.RawInline("typst", (run:gsub("%-", "\\-")))) end
    end
    return inlines
  end,
}

-- Cells between which nothing is shown are one.
local function merged(blocks)
  local made = pandoc.Blocks({})
  local function is_code(block) return block and block.t == "Div" and block.classes:includes("code") end
  for _, block in ipairs(blocks) do
    if is_code(block) and is_code(made[#made]) then
      made[#made].content:extend(block.content)
    else
      made:insert(block)
    end
  end
  return made
end

-- In HTML each appendix folds: what is under its heading goes into a `details` that has the heading
-- as its summary.
local function folded(blocks)
  local made, open = pandoc.Blocks({}), false
  local function close()
    if open then made:insert(pandoc.RawBlock("html", "</details>")) end
    open = false
  end
  for _, block in ipairs(blocks) do
    if block.t == "Header" and block.level == 1 then
      close()
      if block.classes:includes("appendix") then
        open = true
        made:insert(pandoc.RawBlock("html", '<details class="chapter"><summary>'))
        made:insert(block)
        made:insert(pandoc.RawBlock("html", "</summary>"))
      else
        made:insert(block)
      end
    else
      made:insert(block)
    end
  end
  close()
  return made
end

function Pandoc(doc)
  figures = pandoc.utils.stringify(doc.meta.figures)
  page = {
    width = tonumber(pandoc.utils.stringify(doc.meta["text-width-pt"])),
    height = tonumber(pandoc.utils.stringify(doc.meta["text-height-pt"])),
  }
  own = pandoc.json.decode(read("own.json"), false)
  doc = doc:walk(tame)
  doc:walk(count)
  doc = doc:walk(resolve)
  doc.blocks = merged(doc.blocks)
  doc = doc:walk(write)
  if FORMAT == "typst" then doc = doc:walk(hyphens) end
  if html then doc.blocks = folded(doc.blocks) end
  if #missing > 0 then fail("unknown-reference " .. missing[1]) end
  return doc
end
