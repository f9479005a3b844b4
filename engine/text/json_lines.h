#pragma once
// JSON lines: a record a line; empty lines are left out.

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace paddle {

/// Calls `add` with each line of `text` that is not empty, and its place in the file `path`.
void for_each_json_line(
    std::string_view text, const std::string& path,
    const std::function<void(std::string_view line, const SourceLocation& place)>& add);

/// Calls `add` with the string at `key` of each record. kData at the place of a line that is not
/// JSON or whose record has no string there.
void for_each_json_text(std::string_view text, const std::string& path, const std::string& key,
                        const std::function<void(std::string_view)>& add);

}  // namespace paddle
