#pragma once
// Python's string functions on UTF-8, for methods and filters. Results that are not much longer
// than their text are charged by the caller.

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace paddle::jinja {

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);
/// Removes characters of `set` at the ends; all whitespace if it is empty.
std::string strip(std::string_view text, std::string_view set, bool left, bool right);
/// str.split; an empty separator means runs of whitespace. `limit` -1: no limit.
std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                    int64_t limit, TextBudget& budget);
std::vector<std::string> split_right(std::string_view text, std::string_view separator,
                                     int64_t limit, TextBudget& budget);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends, TextBudget& budget);
std::string replace_text(std::string_view text, std::string_view what, std::string_view with,
                         int64_t limit, TextBudget& budget);
/// str.format
std::string brace_format(std::string_view format, const Arguments& arguments, TextBudget& budget);
/// The filter indent.
std::string indent_text(std::string_view text, std::string_view by, bool first, bool blank,
                        TextBudget& budget);
/// Pads to a width in characters. `side`: -1 text on the left, 0 centered, 1 on the right.
std::string pad_text(std::string_view text, int64_t width, std::string_view fill, int side,
                     TextBudget& budget);

}  // namespace paddle::jinja
