#pragma once
// Numbers of updates as users write them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace paddle {

/// A number of updates, stated directly or in epochs.
struct UpdateCount {
  int64_t updates = 0;
  double epochs = 0;  ///< in place of updates; may be a fraction

  /// Whether it is known only with the length of an epoch.
  bool is_in_epochs() const { return epochs > 0; }
  /// The number with epochs of `updates_per_epoch`: rounded, at least 1 for any part of an epoch.
  int64_t count(int64_t updates_per_epoch) const;
};

/// "500", "500 steps", "2 epochs" or "0.5 epochs"; nullopt for other text.
std::optional<UpdateCount> parse_update_count(std::string_view text);

}  // namespace paddle
