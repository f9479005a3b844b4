#include "inspect/graph_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace paddle::inspect {
namespace {

constexpr double kBetweenRows = 24, kBetweenBoxes = 18, kLineWidth = 6, kLineEnd = 8;
constexpr int kOrderSweeps = 12, kPlaceSweeps = 30;
constexpr size_t kNone = static_cast<size_t>(-1);

/// An item in a row of a group, or a net on its way.
struct Vertex {
  size_t item = kNone;
  size_t net = kNone;
  size_t row = 0;
  double width = kLineWidth, height = 0;
  double center = 0;
};

/// From a vertex to one of the next row.
struct Link {
  size_t from, to;
  size_t net;
  double from_offset = 0, to_offset = 0;  ///< from the centers
};

/// Where nets cross the border of a laid-out group, from its left edge.
struct Ports {
  std::map<size_t, double> in, out;
};

/// The places with the least weighted squared distance from the wanted ones that keep the order and
/// the distances (pooled adjacent violators).
void place_row(const std::vector<size_t>& row, const std::vector<double>& wanted,
               const std::vector<double>& weights, std::vector<Vertex>& vertices) {
  struct Pool {
    double sum, weight;
    size_t count;
    double at() const { return sum / weight; }
  };
  std::vector<double> offsets(row.size(), 0);
  for (size_t i = 1; i < row.size(); ++i)
    offsets[i] =
        offsets[i - 1] + kBetweenBoxes + (vertices[row[i - 1]].width + vertices[row[i]].width) / 2;
  std::vector<Pool> pools;
  for (size_t i = 0; i < row.size(); ++i) {
    pools.push_back({(wanted[i] - offsets[i]) * weights[i], weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].at() > pools.back().at()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back() = {pools.back().sum + last.sum, pools.back().weight + last.weight,
                      pools.back().count + last.count};
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools)
    for (size_t n = 0; n < pool.count; ++n, ++i) vertices[row[i]].center = pool.at() + offsets[i];
}

/// Lays out the items of one group.
class GroupLayout {
 public:
  GroupLayout(size_t group, std::vector<GraphItem>& items, std::vector<Ports>& ports)
      : group_(group), items_(items), ports_(ports) {}

  void add_item(size_t item) {
    vertex_of_[item] = vertices_.size();
    vertices_.push_back({item, kNone, 0, items_[item].width, items_[item].height});
  }

  /// A net from a child, or from outside, to children and perhaps to the outside.
  void add_net(size_t net, size_t source, const std::vector<size_t>& targets, bool leaves) {
    nets_.push_back({net, source, targets, leaves});
  }

  void run() {
    find_rows();
    make_links();
    order_rows();
    place();
    finish();
  }

  /// Pieces in the coordinates of the group.
  const std::vector<GraphPiece>& pieces() const { return pieces_; }

 private:
  struct Net {
    size_t net, source;  ///< kNone: from outside
    std::vector<size_t> targets;
    bool leaves;
  };

  /// Row 0 has the values that enter, the last one those that leave.
  void find_rows() {
    std::vector<std::vector<size_t>> readers(vertices_.size());
    std::vector<bool> has_source(vertices_.size(), false);
    for (const Net& n : nets_)
      for (const size_t target : n.targets) {
        const size_t to = vertex_of_.at(target);
        has_source[to] = true;
        if (n.source == kNone) continue;
        const size_t from = vertex_of_.at(n.source);
        ensure(from < to, "a line of the graph goes up");
        readers[from].push_back(to);
      }
    for (Vertex& v : vertices_) v.row = 1;
    size_t last = 1;
    for (size_t i = 0; i < vertices_.size(); ++i) {
      last = std::max(last, vertices_[i].row);
      for (const size_t to : readers[i])
        vertices_[to].row = std::max(vertices_[to].row, vertices_[i].row + 1);
    }
    // Boxes that read nothing are in the row above their first reader.
    for (size_t i = vertices_.size(); i-- > 0;) {
      if (has_source[i] || readers[i].empty()) continue;
      size_t first = last;
      for (const size_t to : readers[i]) first = std::min(first, vertices_[to].row);
      vertices_[i].row = std::max<size_t>(1, first - 1);
    }
    rows_.resize(last + 2);
    for (size_t i = 0; i < vertices_.size(); ++i) rows_[vertices_[i].row].push_back(i);
  }

  size_t add_vertex(size_t net, size_t row) {
    vertices_.push_back({kNone, net, row});
    rows_[row].push_back(vertices_.size() - 1);
    return vertices_.size() - 1;
  }

  void make_links() {
    for (const Net& n : nets_) {
      size_t at = n.source == kNone ? add_vertex(n.net, 0) : vertex_of_.at(n.source);
      std::vector<size_t> targets;
      for (const size_t target : n.targets) targets.push_back(vertex_of_.at(target));
      if (n.leaves) targets.push_back(add_vertex(n.net, rows_.size() - 1));
      std::stable_sort(targets.begin(), targets.end(),
                       [&](size_t a, size_t b) { return vertices_[a].row < vertices_[b].row; });
      for (const size_t target : targets) {
        while (vertices_[at].row + 1 < vertices_[target].row) {
          const size_t next = add_vertex(n.net, vertices_[at].row + 1);
          link(at, next, n.net);
          at = next;
        }
        link(at, target, n.net);
      }
    }
    above_.resize(vertices_.size());
    below_.resize(vertices_.size());
    for (size_t i = 0; i < links_.size(); ++i) {
      below_[links_[i].from].push_back(i);
      above_[links_[i].to].push_back(i);
    }
  }

  /// Distance from the center of a vertex to where a net enters or leaves it.
  double offset(const Vertex& v, size_t net, bool enters) const {
    if (v.item == kNone || !items_[v.item].is_group) return 0;
    const auto& at = enters ? ports_[v.item].in : ports_[v.item].out;
    return at.at(net) - v.width / 2;
  }

  void link(size_t from, size_t to, size_t net) {
    links_.push_back(
        {from, to, net, offset(vertices_[from], net, false), offset(vertices_[to], net, true)});
  }

  int64_t crossings() const {
    std::vector<double> position(vertices_.size(), 0);
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) position[row[i]] = static_cast<double>(i);
    int64_t count = 0;
    for (const auto& row : rows_) {
      std::vector<std::pair<double, double>> ends;
      for (const size_t v : row)
        for (const size_t l : below_[v])
          ends.emplace_back(position[v] + 1e-5 * links_[l].from_offset,
                            position[links_[l].to] + 1e-5 * links_[l].to_offset);
      if (ends.size() > 2000) continue;
      for (size_t a = 0; a < ends.size(); ++a)
        for (size_t b = a + 1; b < ends.size(); ++b)
          count += (ends[a].first - ends[b].first) * (ends[a].second - ends[b].second) < 0;
    }
    return count;
  }

  void order_rows() {
    auto best = rows_;
    int64_t fewest = crossings();
    std::vector<double> position(vertices_.size(), 0);
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t step = 0; step < rows_.size(); ++step) {
        auto& row = rows_[down ? step : rows_.size() - 1 - step];
        std::map<size_t, double> middle;
        for (size_t i = 0; i < row.size(); ++i) {
          const auto& near = down ? above_[row[i]] : below_[row[i]];
          double sum = 0;
          for (const size_t l : near)
            sum += down ? position[links_[l].from] + 1e-4 * links_[l].from_offset
                        : position[links_[l].to] + 1e-4 * links_[l].to_offset;
          middle[row[i]] =
              near.empty() ? static_cast<double>(i) : sum / static_cast<double>(near.size());
        }
        std::stable_sort(row.begin(), row.end(),
                         [&](size_t a, size_t b) { return middle[a] < middle[b]; });
        for (size_t i = 0; i < row.size(); ++i) position[row[i]] = static_cast<double>(i);
      }
      if (const int64_t now = crossings(); now < fewest) {
        fewest = now;
        best = rows_;
      }
    }
    rows_ = best;
  }

  /// Long lines want to be straight more than boxes want to be centered.
  double weight(const Link& l) const {
    const bool from_line = vertices_[l.from].item == kNone, to_line = vertices_[l.to].item == kNone;
    return from_line && to_line ? 8 : from_line || to_line ? 2 : 1;
  }

  void place() {
    for (const auto& row : rows_)
      place_row(row, std::vector<double>(row.size(), 0), std::vector<double>(row.size(), 1),
                vertices_);
    for (int sweep = 0; sweep < 2 * kPlaceSweeps; ++sweep)
      for (size_t step = 0; step < rows_.size(); ++step) {
        const bool down = sweep % 2 == 0;
        const auto& row = rows_[down ? step : rows_.size() - 1 - step];
        std::vector<double> wanted, weights;
        for (const size_t v : row) {
          double sum = 0, total = 0;
          const auto add = [&](const std::vector<size_t>& near, bool above, double factor) {
            for (const size_t i : near) {
              const Link& l = links_[i];
              const double w = factor * weight(l);
              sum += w * (above ? vertices_[l.from].center + l.from_offset - l.to_offset
                                : vertices_[l.to].center + l.to_offset - l.from_offset);
              total += w;
            }
          };
          add(above_[v], true, down ? 1 : 0.25);
          add(below_[v], false, down ? 0.25 : 1);
          wanted.push_back(total > 0 ? sum / total : vertices_[v].center);
          weights.push_back(total > 0 ? total : 0.1);
        }
        place_row(row, wanted, weights, vertices_);
      }
  }

  /// Where links meet a box: in the order of their other ends, next to each other.
  void spread(const std::vector<size_t>& ends, double width, bool above) {
    std::vector<size_t> order = ends;
    const auto other_end = [&](size_t l) {
      return above ? vertices_[links_[l].from].center + links_[l].from_offset
                   : vertices_[links_[l].to].center + links_[l].to_offset;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return other_end(a) < other_end(b); });
    // Links of one net that leave a box begin at one place.
    std::map<size_t, size_t> slot;
    for (const size_t l : order) slot.emplace(above ? l : links_[l].net, slot.size());
    const double step = std::min(16.0, width / static_cast<double>(slot.size() + 1));
    for (const size_t l : order) {
      const double at = (static_cast<double>(slot.at(above ? l : links_[l].net)) -
                         static_cast<double>(slot.size() - 1) / 2) *
                        step;
      (above ? links_[l].to_offset : links_[l].from_offset) = at;
    }
  }

  void finish() {
    for (size_t v = 0; v < vertices_.size(); ++v) {
      if (vertices_[v].item == kNone || items_[vertices_[v].item].is_group) continue;
      spread(above_[v], vertices_[v].width, true);
      spread(below_[v], vertices_[v].width, false);
    }
    double left = 1e300, right = -1e300;
    for (const Vertex& v : vertices_) {
      left = std::min(left, v.center - v.width / 2);
      right = std::max(right, v.center + v.width / 2);
    }
    GraphItem& group = items_[group_];
    Ports& ports = ports_[group_];
    const double inner = std::max(right - left, group.label_width);
    double shift = kGraphMargin - left + (inner - (right - left)) / 2;
    group.width = inner + 2 * kGraphMargin;
    // The title stands left or right of the lines that cross the title bar.
    double first_in = 1e300, last_in = -1e300;
    for (const size_t v : rows_[0]) {
      first_in = std::min(first_in, vertices_[v].center + shift);
      last_in = std::max(last_in, vertices_[v].center + shift);
    }
    group.label_x = kGraphMargin;
    if (const double end = group.label_x + group.label_width + kLineWidth; end > first_in) {
      if (last_in + kLineWidth + group.label_width + kGraphMargin <= group.width) {
        group.label_x = last_in + kLineWidth;
      } else {
        shift += end - first_in;
        group.width += end - first_in;
      }
    }
    for (Vertex& v : vertices_) v.center += shift;
    set_heights();
    for (const size_t v : rows_.front()) ports.in[vertices_[v].net] = vertices_[v].center;
    for (const size_t v : rows_.back()) ports.out[vertices_[v].net] = vertices_[v].center;
  }

  void set_heights() {
    GraphItem& group = items_[group_];
    std::vector<double> top(rows_.size()), bottom(rows_.size());
    double y = group_ == 0 ? kGraphMargin : kGraphTitle;
    top[0] = bottom[0] = 0;
    for (size_t r = 1; r + 1 < rows_.size(); ++r) {
      double height = 0;
      for (const size_t v : rows_[r]) height = std::max(height, vertices_[v].height);
      top[r] = y + (r == 1 ? (rows_[0].empty() ? 0 : 10 + gap(r)) : kBetweenRows + gap(r));
      bottom[r] = top[r] + height;
      y = bottom[r];
    }
    group.height = y + (rows_.back().empty() ? kGraphMargin : kGraphMargin + 6);
    top.back() = bottom.back() = group.height;
    for (const Vertex& v : vertices_) {
      if (v.item == kNone) continue;
      GraphItem& item = items_[v.item];
      item.x = v.center - v.width / 2;
      item.y = (top[v.row] + bottom[v.row] - v.height) / 2;
    }
    for (const Link& l : links_) {
      const Vertex &a = vertices_[l.from], &b = vertices_[l.to];
      GraphPiece piece;
      piece.net = l.net;
      piece.x1 = a.center + l.from_offset;
      piece.x2 = b.center + l.to_offset;
      piece.curve_from = a.row == 0 ? kGraphTitle : bottom[a.row];
      piece.curve_to = top[b.row] - kLineEnd;
      piece.y1 = a.item == kNone ? top[a.row] : items_[a.item].y + items_[a.item].height;
      piece.y2 = b.item == kNone ? top[b.row] : items_[b.item].y;
      piece.ends_at_box = b.item != kNone && !items_[b.item].is_group;
      pieces_.push_back(piece);
    }
  }

  /// Room above row `r` for lines that go far to the side.
  double gap(size_t r) const {
    double farthest = 0;
    for (const size_t v : rows_[r])
      for (const size_t l : above_[v])
        farthest =
            std::max(farthest, std::abs(vertices_[links_[l].from].center + links_[l].from_offset -
                                        vertices_[v].center - links_[l].to_offset));
    return std::min(30.0, farthest / 8);
  }

  size_t group_;
  std::vector<GraphItem>& items_;
  std::vector<Ports>& ports_;
  std::map<size_t, size_t> vertex_of_;
  std::vector<Net> nets_;
  std::vector<Vertex> vertices_;
  std::vector<std::vector<size_t>> rows_;
  std::vector<Link> links_;
  std::vector<std::vector<size_t>> above_, below_;  ///< links of a vertex
  std::vector<GraphPiece> pieces_;
};

/// The groups around an item, itself first, item 0 last.
std::vector<size_t> chain_of(const std::vector<GraphItem>& items, size_t item) {
  std::vector<size_t> chain = {item};
  while (chain.back() != 0) chain.push_back(items[chain.back()].parent);
  return chain;
}

/// A net in one group.
struct LocalNet {
  size_t source = kNone;
  std::vector<size_t> targets;
  bool leaves = false;
};

}  // namespace

GraphLayout lay_out(std::vector<GraphItem>& items, const std::vector<GraphNet>& nets) {
  ensure(!items.empty() && items[0].is_group, "item 0 is the group around everything");
  std::vector<std::map<size_t, LocalNet>> local(items.size());
  for (size_t n = 0; n < nets.size(); ++n) {
    const std::vector<size_t> up = chain_of(items, nets[n].source);
    for (const size_t target : nets[n].targets) {
      const std::vector<size_t> down = chain_of(items, target);
      size_t shared = 1;  // groups that are around both, from the outermost
      while (shared < up.size() - 1 && shared < down.size() - 1 &&
             up[up.size() - 1 - shared] == down[down.size() - 1 - shared])
        ++shared;
      const size_t outer = up[up.size() - shared];
      for (size_t i = 1; i + shared < up.size(); ++i) {
        LocalNet& leaving = local[up[i]][n];
        leaving.source = up[i - 1];
        leaving.leaves = true;
      }
      for (size_t i = 1; i + shared < down.size(); ++i) {
        auto& entering = local[down[i]][n].targets;
        if (std::find(entering.begin(), entering.end(), down[i - 1]) == entering.end())
          entering.push_back(down[i - 1]);
      }
      LocalNet& meeting = local[outer][n];
      meeting.source = up[up.size() - shared - 1];
      const size_t child = down[down.size() - shared - 1];
      if (std::find(meeting.targets.begin(), meeting.targets.end(), child) == meeting.targets.end())
        meeting.targets.push_back(child);
    }
  }
  std::vector<std::vector<size_t>> children(items.size());
  for (size_t i = 1; i < items.size(); ++i) {
    ensure(items[i].parent < i && items[items[i].parent].is_group, "not a group");
    children[items[i].parent].push_back(i);
  }
  std::vector<Ports> ports(items.size());
  std::vector<std::vector<GraphPiece>> pieces(items.size());
  for (size_t g = items.size(); g-- > 0;) {
    if (!items[g].is_group) continue;
    GroupLayout layout(g, items, ports);
    for (const size_t child : children[g]) layout.add_item(child);
    for (const auto& [n, net] : local[g]) layout.add_net(n, net.source, net.targets, net.leaves);
    layout.run();
    pieces[g] = layout.pieces();
  }
  GraphLayout out{items[0].width, items[0].height, {}};
  for (size_t g = 0; g < items.size(); ++g) {
    if (g > 0) {
      items[g].x += items[items[g].parent].x;
      items[g].y += items[items[g].parent].y;
    }
    items[g].label_x += items[g].x;
    for (GraphPiece piece : pieces[g]) {
      piece.x1 += items[g].x;
      piece.x2 += items[g].x;
      for (double* y : {&piece.y1, &piece.y2, &piece.curve_from, &piece.curve_to}) *y += items[g].y;
      out.pieces.push_back(piece);
    }
  }
  return out;
}

}  // namespace paddle::inspect
