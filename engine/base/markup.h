#pragma once
// Text inside of HTML and SVG.

#include <string>
#include <string_view>

namespace paddle {

/// The text with `&`, `<`, `>` and `"` as entities. Control characters, which XML forbids, become
/// spaces; tabs and line breaks stay.
std::string escape_markup(std::string_view text);

}  // namespace paddle
