#pragma once
// Places of boxes and lines of a directed graph whose boxes are grouped: rows from top to bottom,
// so that every line goes down. Groups are laid out from the innermost to the outermost; a line
// that leaves or enters a group crosses its border at one point for each value.

#include <cstddef>
#include <vector>

namespace paddle::inspect {

/// A box or a group of boxes. Item 0 is the group around everything.
struct GraphItem {
  size_t parent = 0;  ///< a group before this item
  bool is_group = false;
  double width = 0, height = 0;  ///< given for boxes, found for groups
  double label_width = 0;        ///< of a group: what its title bar has to hold
  double x = 0, y = 0;           ///< found: the upper left corner
  double label_x = 0;            ///< found, of a group: where its title begins
};

/// A value: from one box to those that read it.
struct GraphNet {
  size_t source = 0;
  std::vector<size_t> targets;
};

/// A piece of a line: straight down, a curve, and straight down again.
struct GraphPiece {
  size_t net = 0;
  double x1 = 0, y1 = 0;                ///< start
  double curve_from = 0, curve_to = 0;  ///< heights between which x changes
  double x2 = 0, y2 = 0;                ///< end
  bool ends_at_box = false;
};

struct GraphLayout {
  double width = 0, height = 0;
  std::vector<GraphPiece> pieces;
};

/// Heights of a title bar, and the margin inside of a group.
constexpr double kGraphTitle = 20, kGraphMargin = 10;

/// Boxes are in an order in which every net goes from an earlier to later ones, and those of a
/// group follow each other; kInternal otherwise.
GraphLayout lay_out(std::vector<GraphItem>& items, const std::vector<GraphNet>& nets);

}  // namespace paddle::inspect
