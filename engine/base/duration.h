#pragma once
// Lengths of time as users write them.

#include <optional>
#include <string_view>

namespace paddle {

/// Seconds of "90", "30m", "1.5h", "1h30m" or "2d"; nullopt for other text.
std::optional<double> parse_duration(std::string_view text);

}  // namespace paddle
