#pragma once
// Pages of HTML for reports: one file without scripts or other files.

#include <string>
#include <string_view>
#include <vector>

namespace paddle {

/// A page with a title of plain text, a body of HTML, and rules of CSS besides those of all pages.
/// Colors are variables: --text, --soft, --back and --line, for light and dark screens.
std::string html_page(std::string_view title, std::string_view body, std::string_view style = "");

/// A table; columns whose title begins with '#' hold numbers. Cells are plain text.
class HtmlTable {
 public:
  explicit HtmlTable(const std::vector<std::string>& titles);
  /// `style`: a class of the row, or "".
  void row(const std::vector<std::string>& cells, const std::string& style = "");
  std::string html() const { return out_ + "</table>\n"; }

 private:
  std::string out_;
  std::vector<bool> numbers_;
};

}  // namespace paddle
