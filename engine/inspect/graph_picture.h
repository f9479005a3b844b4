#pragma once
// A function of the IR as a picture (SVG): a box for each operation with its layer, result and
// weights, inside of boxes for the blocks of the model; lines are values.

#include <string>

#include "ir/module.h"

namespace paddle::inspect {

struct GraphPictureOptions {
  std::string title;  ///< "" for none
  int depth = -1;     ///< blocks deeper than this are one box each; -1: all are open
};

struct GraphPicture {
  std::string svg;
  size_t boxes = 0;       ///< of operations, closed blocks, inputs and outputs
  size_t operations = 0;  ///< of the function, those in branches and loops not counted
};

/// Parameters, states and constants are named in the boxes that read them; lines show the values
/// between operations. The bodies of branches and loops are one box. kUsage for more boxes than a
/// reader can use (5000).
GraphPicture draw_graph(const ir::Function& function, const GraphPictureOptions& options);

}  // namespace paddle::inspect
