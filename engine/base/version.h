#pragma once
// Versions such as "1.2.0": numbers between dots.

#include <string_view>

namespace paddle {

/// Whether `a` is older than `b`. Missing numbers are 0, and what is not a number ends a version.
bool is_older_version(std::string_view a, std::string_view b);
/// Whether the text is one to four numbers between dots.
bool is_version(std::string_view text);

}  // namespace paddle
