#pragma once
// Devices by name for processes that start others, which open them: a GPU's driver does not survive
// a fork.

#include <string_view>

#include "tensor/device.h"

namespace paddle {

/// As `parse_device`, without opening the kind of device and without looking for its number.
Device named_device(std::string_view text);

}  // namespace paddle
