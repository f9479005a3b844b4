#pragma once
// The exchange of bytes between ranks, for kernels of plug-ins (paddle/plugin/ranks.h).

#include "paddle/plugin/ranks.h"

namespace paddle::plugin {

const paddle_ranks_functions& ranks_functions();

}  // namespace paddle::plugin
