#include "runtime/batch_tiling.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "compiler/region_compilers.h"
#include "ops/core/data_format.h"
#include "runtime/execute.h"

namespace paddle::runtime {
namespace {

constexpr int64_t kMaxTiles = 4096;

/// By operand: whether it is read tile by tile. None for an operation that cannot be tiled.
using TiledOperands = std::optional<std::vector<bool>>;

class TileAnalysis {
 public:
  TileAnalysis(const ir::Region& region, const SymbolLookup& symbols) : symbols_(symbols) {
    for (const auto& operation : region.operations) note_view(*operation);
  }

  std::optional<Dims> dims(const ir::Value* value) const {
    auto out = bind_shape(value->type.shape, symbols_);
    if (out && std::any_of(out->begin(), out->end(), [](int64_t size) { return size < 0; }))
      return std::nullopt;
    return out;
  }

  /// The operands of which each sample of the results needs its own sample only; none if samples
  /// depend on each other.
  TiledOperands tiled_operands(const ir::Operation& operation, int64_t batch) const {
    constexpr Trait kUntileable[] = {kRandom, kEffect, kRunTimeShape, kCreation, kOptimizerUpdate};
    for (const Trait trait : kUntileable)
      if (operation.op->has(trait)) return std::nullopt;
    for (const ir::Value* v : operation.results)
      if (!has_batch(v, batch)) return std::nullopt;
    TiledOperands tiled = tile_by_kind(operation, batch);
    if (!tiled || std::count(tiled->begin(), tiled->end(), true) == 0) return std::nullopt;
    for (size_t i = 0; i < tiled->size(); ++i) {
      const ir::Value* v = operation.operands[i];
      if (v && (!dims(v) || ((*tiled)[i] && !has_batch(v, batch)))) return std::nullopt;
    }
    return tiled;
  }

  double bytes(const ir::Value* value) const {
    const auto size = dims(value);
    return size ? static_cast<double>(storage_bytes(value->type.dtype,
                                                    element_count(std::span<const int64_t>(*size))))
                : 0;
  }

 private:
  bool has_batch(const ir::Value* value, int64_t batch) const {
    const DType dtype = value->type.dtype;
    const auto size = dims(value);
    return size && !size->empty() && size->front() == batch &&
           storage_bytes(dtype, 2) == 2 * item_size(dtype);
  }

  TiledOperands tile_by_kind(const ir::Operation& operation, int64_t batch) const {
    if (compiler::is_claimed(operation)) return std::nullopt;
    if (operation.regions.size() == 1) return tile_fused(operation, batch);
    if (!operation.regions.empty()) return std::nullopt;
    if (operation.op->def->view) return tile_view(operation);
    if (has_symbols(operation.attrs)) return std::nullopt;
    if (operation.op->has(kElementwise)) return tile_elementwise(operation, batch);
    if (operation.op->has(kReduction)) return tile_reduction(operation);
    return tile_data_format(operation);
  }

  /// Every member of the group must be tileable, and members that bytes an operand of the group
  /// must read it the same way.
  TiledOperands tile_fused(const ir::Operation& operation, int64_t batch) const {
    const ir::Region& region = *operation.regions[0];
    std::map<const ir::Value*, bool> arguments;
    for (const auto& member : region.operations) {
      const TiledOperands tiled = tiled_operands(*member, batch);
      if (!tiled) return std::nullopt;
      for (size_t i = 0; i < tiled->size(); ++i) {
        const ir::Value* v = member->operands[i];
        if (!v || v->constant) continue;
        const bool inside = v->producer != nullptr;
        if (inside && !(*tiled)[i]) return std::nullopt;
        if (!inside && arguments.emplace(v, (*tiled)[i]).first->second != (*tiled)[i])
          return std::nullopt;
      }
    }
    std::vector<bool> out;
    for (const ir::Value* v : region.arguments) out.push_back(arguments[v]);
    return out;
  }

  /// Sample i of the view must start where sample i of the operand does, with the same strides in
  /// all of them.
  TiledOperands tile_view(const ir::Operation& operation) const {
    const auto view = views_.find(operation.results[0]);
    if (view == views_.end() || operation.operands.size() != 1) return std::nullopt;
    const Layout &whole = view->second, from = layout(operation.operands[0]);
    if (from.shape.empty() || from.shape[0] != whole.shape[0]) return std::nullopt;
    Layout one = from;
    Dims shape = whole.shape;
    one.shape[0] = shape[0] = 1;
    const Layout sample =
        view_layout(*operation.op, bind_attrs(operation.attrs, symbols_), one, shape);
    if (!sample.present || sample.offset != whole.offset || whole.strides[0] != from.strides[0])
      return std::nullopt;
    for (size_t i = 1; i < shape.size(); ++i)
      if (sample.strides[i] != whole.strides[i]) return std::nullopt;
    return std::vector<bool>{true};
  }

  TiledOperands tile_elementwise(const ir::Operation& operation, int64_t batch) const {
    const size_t rank = operation.results[0]->type.shape.size();
    std::vector<bool> out;
    for (const ir::Value* v : operation.operands)
      out.push_back(v && v->type.shape.size() == rank && has_batch(v, batch));
    return out;
  }

  TiledOperands tile_reduction(const ir::Operation& operation) const {
    const int axis = operation.op->attr_index("axis");
    if (axis < 0 || operation.operands.size() != 1) return std::nullopt;
    const AttrValue& axes = operation.attrs[static_cast<size_t>(axis)];
    if (axes.is_none()) return std::nullopt;
    const auto rank = static_cast<int64_t>(operation.operands[0]->type.shape.size());
    for (const int64_t a : axes.as_ints())
      if (a == 0 || a == -rank) return std::nullopt;
    return std::vector<bool>{true};
  }

  /// An operation whose results all have a data format computes each sample from the same sample of
  /// the operands with a data format. Shapes in attributes would have to be tiled as well.
  static TiledOperands tile_data_format(const ir::Operation& operation) {
    const Op& op = *operation.op;
    const auto layout = data_format_operands(op);
    if (!layout || layout->results.size() != op.results().size() || !layout->attrs.empty() ||
        operation.operands.size() != op.operands().size())
      return std::nullopt;
    std::vector<bool> out(operation.operands.size());
    for (const size_t i : layout->operands) out[i] = operation.operands[i] != nullptr;
    return out;
  }

  void note_view(const ir::Operation& operation) {
    if (!operation.op->def->view || operation.operands.size() != 1 || !operation.operands[0] ||
        !can_bind(operation.attrs, symbols_))
      return;
    const auto from = dims(operation.operands[0]), to = dims(operation.results[0]);
    if (!from || !to) return;
    const Layout view = view_layout(*operation.op, bind_attrs(operation.attrs, symbols_),
                                    layout(operation.operands[0]), *to);
    if (view.present) views_.emplace(operation.results[0], view);
  }

  Layout layout(const ir::Value* value) const {
    const auto view = views_.find(value);
    return view != views_.end() ? view->second
                                : Layout::contiguous(value->type.dtype, *dims(value));
  }

  const SymbolLookup& symbols_;
  std::map<const ir::Value*, Layout> views_;
};

struct Candidate {
  const ir::Operation* operation;
  std::vector<bool> tiled;
  double moved = 0;   ///< bytes of tiled values
  double weight = 0;  ///< bytes of values that are read whole
};

class Search {
 public:
  Search(const TileAnalysis& analysis, double working_set, std::vector<BatchTiling>& out)
      : analysis_(analysis), working_set_(working_set), out_(out) {}

  void add(const ir::Operation& operation) {
    if (operation.results.empty() || operation.operands.empty()) return finish();
    const auto dims = analysis_.dims(operation.results[0]);
    const int64_t batch = dims && !dims->empty() ? dims->front() : 0;
    if (batch != batch_) finish();
    batch_ = batch;
    const TiledOperands tiled =
        batch > 1 ? analysis_.tiled_operands(operation, batch) : std::nullopt;
    if (!tiled) return finish();
    // A value that is read whole has to be complete, so its producer cannot be in the same run.
    const auto depends = [&] {
      for (size_t i = 0; i < tiled->size(); ++i)
        if (!(*tiled)[i] && produced_.count(operation.operands[i]) > 0) return true;
      return false;
    };
    if (depends()) finish();
    Candidate candidate{&operation, *tiled};
    for (size_t i = 0; i < tiled->size(); ++i) {
      const ir::Value* v = operation.operands[i];
      if (v) ((*tiled)[i] ? candidate.moved : candidate.weight) += analysis_.bytes(v);
    }
    for (const ir::Value* v : operation.results) candidate.moved += analysis_.bytes(v);
    if (operation.op->def->view) candidate.moved = 0;
    const bool sample_fits = candidate.moved <= working_set_ * static_cast<double>(batch);
    if (!sample_fits) return finish();
    produced_.insert(operation.results.begin(), operation.results.end());
    run_.push_back(std::move(candidate));
  }

  /// Emits the sections of the run whose weights fit in the working set as well.
  void finish() {
    for (size_t first = 0; first < run_.size();) {
      size_t end = first, large = 0;
      double weight = 0, most = 0;
      for (size_t i = first; i < run_.size(); ++i) {
        weight += run_[i].weight;
        if (weight > working_set_) break;
        if (run_[i].moved <= working_set_ && large > 0) continue;
        if (run_[i].moved <= working_set_) break;
        ++large;
        end = i + 1;
        most = std::max(most, run_[i].moved);
      }
      if (large >= 2) emit(first, end, most);
      first = std::max(end, first + 1);
    }
    run_.clear();
    produced_.clear();
  }

 private:
  void emit(size_t first, size_t end, double most) {
    BatchTiling tiling;
    tiling.batch = batch_;
    const int64_t limit = std::min(batch_, kMaxTiles);
    for (tiling.tiles = 2; tiling.tiles <= limit; ++tiling.tiles)
      if (batch_ % tiling.tiles == 0 && most <= working_set_ * static_cast<double>(tiling.tiles))
        break;
    if (tiling.tiles > limit) return;
    for (size_t i = first; i < end; ++i) {
      const ir::Operation& operation = *run_[i].operation;
      tiling.operations.push_back(&operation);
      tiling.tiled.insert(operation.results.begin(), operation.results.end());
      for (size_t o = 0; o < run_[i].tiled.size(); ++o)
        if (run_[i].tiled[o]) tiling.tiled.insert(operation.operands[o]);
    }
    // A value cannot be read whole by one operation and tile by tile by another.
    for (size_t i = first; i < end; ++i)
      for (size_t o = 0; o < run_[i].tiled.size(); ++o)
        if (!run_[i].tiled[o] && tiling.tiled.count(run_[i].operation->operands[o]) > 0) return;
    out_.push_back(std::move(tiling));
  }

  const TileAnalysis& analysis_;
  const double working_set_;
  std::vector<BatchTiling>& out_;
  std::vector<Candidate> run_;
  std::set<const ir::Value*> produced_;
  int64_t batch_ = 0;
};

}  // namespace

std::vector<BatchTiling> find_batch_tilings(const ir::Region& region, const SymbolLookup& symbols,
                                            int64_t working_set) {
  std::vector<BatchTiling> out;
  if (working_set <= 0) return out;
  const TileAnalysis analysis(region, symbols);
  Search search(analysis, static_cast<double>(working_set), out);
  for (const auto& operation : region.operations) search.add(*operation);
  search.finish();
  return out;
}

int64_t tile_working_set() {
  // sysconf adds up the caches of a whole package, but a core only fills the one it shares.
  static const int64_t bytes = [] {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
    int64_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit) || size <= 0 || size > (int64_t{1} << 20)) return int64_t{0};
    return (unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : 0) / 2;
  }();
  return bytes;
}

}  // namespace paddle::runtime
