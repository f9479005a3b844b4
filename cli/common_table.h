#pragma once
// Tables of text on the terminal, and short forms of numbers for them.

#include <string>
#include <vector>

namespace paddle::cli {

/// Columns as wide as their widest cell; long cells are cut.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add_column(std::string name) { header_.push_back(std::move(name)); }
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// "0.9812", "1.25e-05".
std::string short_number(double value);
/// "2:05", "1:02:05".
std::string short_duration(double seconds);

}  // namespace paddle::cli
