#include "base/html_page.h"

#include "base/markup.h"
#include "base/text.h"

namespace paddle {
namespace {

constexpr std::string_view kStyle = R"(
:root { --text: #1d1f23; --soft: #6a707a; --back: #fff; --line: #e2e5ea; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --soft: #9aa1ab; --back: #17191d;
  --line: #33373e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin: 2em 0 .4em; }
p { margin: .4em 0; } .soft { color: var(--soft); }
svg { width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: var(--text); }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: .2em .6em .2em 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
td:not(.n) { min-width: 9em; }
th.n, td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
)";

}  // namespace

std::string html_page(std::string_view title, std::string_view body, std::string_view style) {
  return str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>",
             escape_markup(title), "</title>\n<style>", kStyle, style,
             "</style>\n</head>\n<body>\n", body, "</body>\n</html>\n");
}

HtmlTable::HtmlTable(const std::vector<std::string>& titles) {
  out_ = "<table>\n<tr>";
  for (const std::string& title : titles) {
    numbers_.push_back(title.starts_with('#'));
    out_ += (numbers_.back() ? "<th class=\"n\">" : "<th>") +
            escape_markup(numbers_.back() ? title.substr(1) : title) + "</th>";
  }
  out_ += "</tr>\n";
}

void HtmlTable::row(const std::vector<std::string>& cells, const std::string& style) {
  out_ += style.empty() ? "<tr>" : "<tr class=\"" + style + "\">";
  for (size_t i = 0; i < cells.size(); ++i)
    out_ += (numbers_[i] ? "<td class=\"n\">" : "<td>") + escape_markup(cells[i]) + "</td>";
  out_ += "</tr>\n";
}

}  // namespace paddle
