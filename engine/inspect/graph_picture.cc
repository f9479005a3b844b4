#include "inspect/graph_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/markup.h"
#include "base/source_location.h"
#include "base/text.h"
#include "inspect/graph_layout.h"

namespace paddle::inspect {
namespace {

constexpr size_t kMaxBoxes = 5000, kMaxLetters = 60;
constexpr double kLetter = 6.7, kBoldLetter = 7.3, kLine = 15;  // of the fonts in kStyle

constexpr const char* kStyle = R"(<style>
text { font: 11px "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace; fill: #24292f; }
.name { font-weight: bold; font-size: 12px; }
.type { fill: #57606a; }
.label { fill: #57606a; font-style: italic; }
rect.block { fill: #8250df; fill-opacity: 0.05; stroke: #8250df; stroke-opacity: 0.45; }
rect.operation { fill: #ffffff; stroke: #8c959f; }
rect.weighted { fill: #ddf4ff; stroke: #0969da; }
rect.control { fill: #fff8c5; stroke: #9a6700; }
rect.port { fill: #dafbe1; stroke: #1a7f37; }
rect.closed { fill: #fbefff; stroke: #8250df; }
path { fill: none; stroke: #57606a; stroke-width: 1.2; }
path:hover { stroke: #cf222e; stroke-width: 2.5; }
</style>
)";

/// "layer.0", "attention", "linear" of "model.yaml:3:5 @layer.0.attention.linear": numbers belong
/// to the name before them. ONNX files separate names by slashes as well.
std::vector<std::string> path_of(const std::string& location) {
  std::string layer = parse_origin(location).layer;
  std::replace(layer.begin(), layer.end(), '/', '.');
  std::vector<std::string> path;
  for (const std::string& piece : split(layer, '.')) {
    if (piece.empty()) continue;
    if (!path.empty() && piece.find_first_not_of("0123456789") == std::string::npos)
      path.back() += "." + piece;
    else
      path.push_back(piece);
  }
  return path;
}

/// The place of a location, without folders.
std::string place_of(const std::string& location) {
  const std::string place = parse_origin(location).place;
  const size_t slash = place.find_last_of('/');
  return slash == std::string::npos ? place : place.substr(slash + 1);
}

std::string shortened(const std::string& line) {
  if (line.size() <= kMaxLetters) return line;
  size_t end = kMaxLetters - 1;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "…";
}

size_t letters(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// The text of a box.
struct Content {
  std::string name, layer;         ///< first line
  std::vector<std::string> lines;  ///< types and weights
  std::string kind, tip;
};

/// A value that no operation has to compute first.
bool is_weight(const ir::Value& value, const std::set<const ir::Value*>& inputs) {
  return !value.producer && !inputs.contains(&value);
}

class Picture {
 public:
  Picture(const ir::Function& function, const GraphPictureOptions& options)
      : function_(function), options_(options) {}

  GraphPicture draw() {
    add_group(0, "", "");
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      const ir::Value* value = function_.body.arguments[i];
      if (function_.inputs[i].kind != ir::PortKind::kValue) continue;
      inputs_.insert(value);
      source_[value] = add_box(
          0, {function_.inputs[i].name, "", {value->type.text()}, "port", "an input of the model"});
    }
    std::vector<const ir::Operation*> operations;
    for (const auto& o : function_.body.operations) {
      ++operations_;
      if (is_copy(*o))
        same_[o->results[0]] = o->operands[0];
      else
        operations.push_back(o.get());
    }
    std::vector<std::vector<std::string>> paths;
    for (const ir::Operation* o : operations) paths.push_back(path_of(o->location));
    add_operations(operations, paths, 0, operations.size(), 0, 0);
    for (size_t i = 0; i < function_.outputs.size(); ++i) {
      if (function_.outputs[i].kind != ir::PortKind::kValue) continue;
      const ir::Value* value = function_.body.results[i];
      const size_t box = add_box(
          0,
          {function_.outputs[i].name, "", {value->type.text()}, "port", "an output of the model"});
      add_reading(value, box);
    }
    return {svg(), contents_.size(), operations_};
  }

 private:
  /// A conversion to the type that the value has: importers make them.
  static bool is_copy(const ir::Operation& o) {
    return o.op->has(kSameElements) && o.op->name() == std::string_view("cast") && o.operands[0] &&
           same_type(o.operands[0]->type, o.results[0]->type);
  }

  size_t add_group(size_t parent, const std::string& label, const std::string& tip) {
    GraphItem item;
    item.parent = parent;
    item.is_group = true;
    item.label_width = kLetter * static_cast<double>(letters(label));
    items_.push_back(item);
    labels_[items_.size() - 1] = {label, tip};
    return items_.size() - 1;
  }

  size_t add_box(size_t parent, Content content) {
    if (contents_.size() == kMaxBoxes)
      fail(ErrorCode::kUsage, "the graph has more than ", kMaxBoxes,
           " operations; --depth 0 draws each block as one box");
    double width =
        kBoldLetter * static_cast<double>(letters(content.name)) +
        (content.layer.empty() ? 0.0 : 8 + kLetter * static_cast<double>(letters(content.layer)));
    for (std::string& line : content.lines) {
      line = shortened(line);
      width = std::max(width, kLetter * static_cast<double>(letters(line)));
    }
    GraphItem item;
    item.parent = parent;
    item.width = width + 16;
    item.height = kLine * static_cast<double>(1 + content.lines.size()) + 8;
    items_.push_back(item);
    contents_[items_.size() - 1] = std::move(content);
    return items_.size() - 1;
  }

  /// Operations [begin, end), whose paths have the first `depth` names in common, into a group.
  void add_operations(const std::vector<const ir::Operation*>& operations,
                      const std::vector<std::vector<std::string>>& paths, size_t begin, size_t end,
                      size_t depth, size_t group) {
    for (size_t i = begin; i < end;) {
      size_t next = i + 1;
      if (paths[i].size() > depth)
        while (next < end && paths[next].size() > depth && paths[next][depth] == paths[i][depth])
          ++next;
      if (paths[i].size() <= depth || next == i + 1) {
        add_operation(*operations[i], paths[i], depth, group);
      } else if (options_.depth >= 0 && depth >= static_cast<size_t>(options_.depth)) {
        add_closed({operations.begin() + static_cast<std::ptrdiff_t>(i),
                    operations.begin() + static_cast<std::ptrdiff_t>(next)},
                   paths[i], depth, group);
      } else {
        const std::vector<std::string> shown(
            paths[i].begin(), paths[i].begin() + static_cast<std::ptrdiff_t>(depth) + 1);
        const size_t inner = add_group(group, paths[i][depth], join(shown, "."));
        add_operations(operations, paths, i, next, depth + 1, inner);
      }
      i = next;
    }
  }

  void add_operation(const ir::Operation& o, const std::vector<std::string>& path, size_t depth,
                     size_t group) {
    Content content;
    const bool has_regions = !o.regions.empty();
    content.name = std::string(o.op->name());
    if (has_regions) content.name = ir::is_loop(o) ? "while" : "if";
    const std::vector<std::string> rest(
        path.begin() + static_cast<std::ptrdiff_t>(std::min(depth, path.size())), path.end());
    content.layer = join(rest, ".");
    if (content.layer == content.name) content.layer.clear();
    for (const ir::Value* result : o.results) {
      if (result->index > 0 && !used().contains(result)) continue;
      content.lines.push_back(result->name.empty() ? result->type.text()
                                                   : result->name + ": " + result->type.text());
    }
    const auto weights = weights_of({&o}, join(path, "."));
    content.lines.insert(content.lines.end(), weights.begin(), weights.end());
    if (has_regions) {
      int64_t inner = 0;
      for (const auto& region : o.regions) ir::for_each_operation(*region, [&](auto&) { ++inner; });
      content.lines.push_back(str(inner, inner == 1 ? " operation inside" : " operations inside"));
    }
    content.kind = has_regions ? "control" : weights.empty() ? "operation" : "weighted";
    content.tip = tip_of(o, path);
    const size_t box = add_box(group, std::move(content));
    for (const ir::Value* result : o.results) source_[result] = box;
    ir::for_each_read(o, [&](const ir::Value* v) { add_reading(v, box); });
  }

  /// A block that is drawn as one box.
  void add_closed(const std::vector<const ir::Operation*>& operations,
                  const std::vector<std::string>& path, size_t depth, size_t group) {
    Content content;
    content.name = path[depth];
    content.kind = "closed";
    std::set<const ir::Value*> inner;
    for (const ir::Operation* o : operations) inner.insert(o->results.begin(), o->results.end());
    for (const ir::Operation* o : operations)
      for (const ir::Value* result : o->results)
        if (readers_outside(result, operations)) content.lines.push_back(result->type.text());
    content.lines.push_back(str(operations.size(), " operations"));
    content.tip = join(path, ".");
    const size_t box = add_box(group, std::move(content));
    for (const ir::Value* v : inner) source_[v] = box;
    for (const ir::Operation* o : operations)
      ir::for_each_read(*o, [&](const ir::Value* v) {
        if (!inner.contains(origin(v))) add_reading(v, box);
      });
  }

  /// Names and shapes of parameters, states and constants that operations read.
  std::vector<std::string> weights_of(const std::vector<const ir::Operation*>& operations,
                                      const std::string& layer) const {
    std::vector<std::string> out;
    for (const ir::Operation* o : operations)
      for (const ir::Value* v : o->operands) {
        if (!v || !is_weight(*v, inputs_)) continue;
        std::string name = name_of(*v);
        if (!layer.empty() && name.starts_with(layer + ".")) name = name.substr(layer.size() + 1);
        if (name.empty() && v->type.shape.empty()) continue;  // a number in the text
        out.push_back((name.empty() ? "constant" : name) + " " + text(v->type.shape));
      }
    constexpr size_t kMaxWeights = 4;
    if (out.size() > kMaxWeights) {
      const size_t more = out.size() - kMaxWeights + 1;
      out.resize(kMaxWeights - 1);
      out.push_back(str("and ", more, " more weights"));
    }
    return out;
  }

  std::string name_of(const ir::Value& value) const {
    for (size_t i = 0; i < function_.inputs.size(); ++i)
      if (function_.body.arguments[i] == &value)
        return function_.inputs[i].kind == ir::PortKind::kRandom ? "" : function_.inputs[i].name;
    return value.name;
  }

  static std::string tip_of(const ir::Operation& o, const std::vector<std::string>& path) {
    std::string out = std::string(o.op->name());
    if (!path.empty()) out += " in " + join(path, ".");
    if (const std::string place = place_of(o.location); !place.empty()) out += " at " + place;
    for (size_t i = 0; i < o.attrs.values.size(); ++i)
      out += str("\n", o.op->def->attrs[i].name, " = ", shortened(o.attrs.values[i].text()));
    return out;
  }

  /// The value that copies of it stand for.
  const ir::Value* origin(const ir::Value* value) const {
    for (auto it = same_.find(value); it != same_.end(); it = same_.find(value)) value = it->second;
    return value;
  }

  void add_reading(const ir::Value* value, size_t box) {
    value = origin(value);
    const auto found = source_.find(value);
    if (found == source_.end() || found->second == box) return;
    const auto [net, fresh] = net_of_.emplace(value, nets_.size());
    if (fresh) {
      nets_.push_back({found->second, {}});
      values_.push_back(value);
    }
    auto& targets = nets_[net->second].targets;
    if (std::find(targets.begin(), targets.end(), box) == targets.end()) targets.push_back(box);
  }

  const std::set<const ir::Value*>& used() {
    if (!used_.empty()) return used_;
    for (const auto& o : function_.body.operations)
      ir::for_each_read(*o, [&](const ir::Value* v) { used_.insert(v); });
    used_.insert(function_.body.results.begin(), function_.body.results.end());
    return used_;
  }

  bool readers_outside(const ir::Value* value, const std::vector<const ir::Operation*>& inside) {
    if (readers_.empty())
      for (const auto& o : function_.body.operations)
        ir::for_each_read(*o, [&](const ir::Value* v) { readers_[v].push_back(o.get()); });
    const auto& results = function_.body.results;
    if (std::find(results.begin(), results.end(), value) != results.end()) return true;
    for (const ir::Operation* reader : readers_[value])
      if (std::find(inside.begin(), inside.end(), reader) == inside.end()) return true;
    return false;
  }

  std::string svg() {
    const GraphLayout layout = lay_out(items_, nets_);
    const double head = options_.title.empty() ? 0 : 30;
    const double width =
        std::max(layout.width, kBoldLetter * static_cast<double>(letters(options_.title)) + 24);
    const double shift = (width - layout.width) / 2;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
        width, layout.height + head);
    out += kStyle;
    out +=
        "<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" style=\"fill:#57606a;"
        "stroke:none\"/></marker></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    if (head > 0)
      out += fmt::format("<text class=\"name\" x=\"12\" y=\"21\">{}</text>\n",
                         escape_markup(options_.title));
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n", shift, head);
    for (const auto& [item, label] : labels_)
      if (item > 0) out += block(items_[item], label.first, label.second);
    for (const GraphPiece& piece : layout.pieces) out += line(piece);
    for (const auto& [item, content] : contents_) out += box(items_[item], content);
    return out + "</g>\n</svg>\n";
  }

  static std::string rectangle(const GraphItem& item, const std::string& style) {
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"4\"/>",
        style, item.x, item.y, item.width, item.height);
  }

  static std::string block(const GraphItem& item, const std::string& label,
                           const std::string& tip) {
    return "<g><title>" + escape_markup(tip) + "</title>" + rectangle(item, "block") +
           fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>\n",
                       item.label_x, item.y + 14, escape_markup(label));
  }

  std::string line(const GraphPiece& p) const {
    const ir::Value* value = values_[p.net];
    std::string path = fmt::format("M{:.1f} {:.1f}", p.x1, p.y1);
    if (p.x1 == p.x2) {
      path += fmt::format("V{:.1f}", p.y2);
    } else {
      const double middle = (p.curve_from + p.curve_to) / 2;
      path += fmt::format("V{:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}V{:.1f}", p.curve_from,
                          p.x1, middle, p.x2, middle, p.x2, p.curve_to, p.y2);
    }
    const std::string tip =
        value->name.empty() ? value->type.text() : value->name + ": " + value->type.text();
    return fmt::format("<path d=\"{}\"{}><title>{}</title></path>\n", path,
                       p.ends_at_box ? " marker-end=\"url(#end)\"" : "", escape_markup(tip));
  }

  static std::string box(const GraphItem& item, const Content& content) {
    std::string out =
        "<g><title>" + escape_markup(content.tip) + "</title>" + rectangle(item, content.kind);
    double y = item.y + 15;
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"><tspan class=\"name\">{}</tspan>",
                       item.x + 8, y, escape_markup(content.name));
    if (!content.layer.empty())
      out += "<tspan class=\"label\" dx=\"8\">" + escape_markup(content.layer) + "</tspan>";
    out += "</text>";
    for (const std::string& line : content.lines)
      out += fmt::format("<text class=\"type\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", item.x + 8,
                         y += kLine, escape_markup(line));
    return out + "</g>\n";
  }

  const ir::Function& function_;
  const GraphPictureOptions& options_;
  std::vector<GraphItem> items_;
  std::map<size_t, std::pair<std::string, std::string>> labels_;  ///< of groups: label, full path
  std::map<size_t, Content> contents_;                            ///< of boxes
  std::vector<GraphNet> nets_;
  std::vector<const ir::Value*> values_;  ///< of the nets
  std::unordered_map<const ir::Value*, size_t> net_of_, source_;
  std::unordered_map<const ir::Value*, const ir::Value*> same_;
  std::unordered_map<const ir::Value*, std::vector<const ir::Operation*>> readers_;
  std::set<const ir::Value*> inputs_, used_;
  size_t operations_ = 0;
};

}  // namespace

GraphPicture draw_graph(const ir::Function& function, const GraphPictureOptions& options) {
  return Picture(function, options).draw();
}

}  // namespace paddle::inspect
