#pragma once
// Lengths of time as users write them.

#include <optional>
#include <string>
#include <string_view>

namespace paddle {

/// Seconds of "90", "60ms", "30m", "20 min", "1.5h", "1h30m", "2d" or "1 day"; nullopt for other
/// text.
std::optional<double> parse_duration(std::string_view text);

/// "0.123 s".
std::string seconds_text(double seconds);

/// The forms of a duration, for messages.
inline constexpr const char* kDurationForms = "seconds or a time such as 60ms, 30m or 1h30m";

}  // namespace paddle
