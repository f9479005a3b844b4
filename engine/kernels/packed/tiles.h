#pragma once
// The loops of each instruction set.

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/packed/panels.h"
#include "tensor/dtype.h"

namespace paddle::cpu {

const PackedLoops& packed_loops_plain();
const PackedLoops& packed_loops_avx2();
const PackedLoops& packed_loops_vnni();

}  // namespace paddle::cpu
