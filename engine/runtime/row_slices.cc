#include "runtime/row_slices.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "ops/images.h"
#include "runtime/execute.h"

namespace paddle::runtime {
namespace {

constexpr int64_t kMostSlices = 4096;

/// By operand: whether it is read row by row. None for an operation that cannot be cut.
using Cut = std::optional<std::vector<bool>>;

class RowAnalysis {
 public:
  RowAnalysis(const ir::Region& region, const SymbolLookup& symbols) : symbols_(symbols) {
    for (const auto& operation : region.operations) note_view(*operation);
  }

  std::optional<Dims> dims(const ir::Value* value) const {
    auto out = bind_shape(value->type.shape, symbols_);
    if (out && std::any_of(out->begin(), out->end(), [](int64_t size) { return size < 0; }))
      return std::nullopt;
    return out;
  }

  /// Which operands give each row of the results, if rows do not depend on each other.
  Cut operands_cut(const ir::Operation& operation, int64_t rows) const {
    constexpr Trait kBound[] = {kRandom, kEffect, kRunTimeShape, kCreation, kOptimizerUpdate};
    for (const Trait trait : kBound)
      if (operation.op->has(trait)) return std::nullopt;
    for (const ir::Value* v : operation.results)
      if (!has_rows(v, rows)) return std::nullopt;
    Cut cut = cut_by_kind(operation, rows);
    if (!cut || std::count(cut->begin(), cut->end(), true) == 0) return std::nullopt;
    for (size_t i = 0; i < cut->size(); ++i) {
      const ir::Value* v = operation.operands[i];
      if (v && (!dims(v) || ((*cut)[i] && !has_rows(v, rows)))) return std::nullopt;
    }
    return cut;
  }

  double bytes(const ir::Value* value) const {
    const auto size = dims(value);
    return size ? static_cast<double>(storage_bytes(value->type.dtype,
                                                    element_count(std::span<const int64_t>(*size))))
                : 0;
  }

 private:
  bool has_rows(const ir::Value* value, int64_t rows) const {
    const DType dtype = value->type.dtype;
    const auto size = dims(value);
    return size && !size->empty() && size->front() == rows &&
           storage_bytes(dtype, 2) == 2 * item_size(dtype);
  }

  Cut cut_by_kind(const ir::Operation& operation, int64_t rows) const {
    if (operation.regions.size() == 1) return cut_group(operation, rows);
    if (!operation.regions.empty()) return std::nullopt;
    if (operation.op->def->view) return cut_view(operation);
    if (has_symbols(operation.attrs)) return std::nullopt;
    if (operation.op->has(kElementwise)) return cut_elementwise(operation, rows);
    if (operation.op->has(kReduction)) return cut_reduction(operation);
    return cut_images(operation);
  }

  /// Each step must be cut, and read what stands outside the group always in the same way.
  Cut cut_group(const ir::Operation& operation, int64_t rows) const {
    const ir::Region& region = *operation.regions[0];
    std::map<const ir::Value*, bool> arguments;
    for (const auto& step : region.operations) {
      const Cut cut = operands_cut(*step, rows);
      if (!cut) return std::nullopt;
      for (size_t i = 0; i < cut->size(); ++i) {
        const ir::Value* v = step->operands[i];
        if (!v || v->constant) continue;
        const bool inside = v->producer != nullptr;
        if (inside && !(*cut)[i]) return std::nullopt;
        if (!inside && arguments.emplace(v, (*cut)[i]).first->second != (*cut)[i])
          return std::nullopt;
      }
    }
    std::vector<bool> out;
    for (const ir::Value* v : region.arguments) out.push_back(arguments[v]);
    return out;
  }

  /// Row i of the view must lie where row i of the operand begins, in one form for all.
  Cut cut_view(const ir::Operation& operation) const {
    const auto view = views_.find(operation.results[0]);
    if (view == views_.end() || operation.operands.size() != 1) return std::nullopt;
    const Layout &whole = view->second, from = layout(operation.operands[0]);
    if (from.shape.empty() || from.shape[0] != whole.shape[0]) return std::nullopt;
    Layout one = from;
    Dims shape = whole.shape;
    one.shape[0] = shape[0] = 1;
    const Layout row =
        view_layout(*operation.op, bind_attrs(operation.attrs, symbols_), one, shape);
    if (!row.present || row.offset != whole.offset || whole.strides[0] != from.strides[0])
      return std::nullopt;
    for (size_t i = 1; i < shape.size(); ++i)
      if (row.strides[i] != whole.strides[i]) return std::nullopt;
    return std::vector<bool>{true};
  }

  Cut cut_elementwise(const ir::Operation& operation, int64_t rows) const {
    const size_t rank = operation.results[0]->type.shape.size();
    std::vector<bool> out;
    for (const ir::Value* v : operation.operands)
      out.push_back(v && v->type.shape.size() == rank && has_rows(v, rows));
    return out;
  }

  Cut cut_reduction(const ir::Operation& operation) const {
    const int axis = operation.op->attr_index("axis");
    if (axis < 0 || operation.operands.size() != 1) return std::nullopt;
    const AttrValue& axes = operation.attrs[static_cast<size_t>(axis)];
    if (axes.is_none()) return std::nullopt;
    const auto rank = static_cast<int64_t>(operation.operands[0]->type.shape.size());
    for (const int64_t a : axes.as_ints())
      if (a == 0 || a == -rank) return std::nullopt;
    return std::vector<bool>{true};
  }

  /// What gives nothing but images computes each from its image in every operand of images. Dims
  /// of images in attributes would have to be cut, too.
  static Cut cut_images(const ir::Operation& operation) {
    const Op& op = *operation.op;
    const auto images = images_of(op);
    if (!images || images->results.size() != op.results().size() || !images->attrs.empty() ||
        operation.operands.size() != op.operands().size())
      return std::nullopt;
    std::vector<bool> out(operation.operands.size());
    for (const size_t i : images->operands) out[i] = operation.operands[i] != nullptr;
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
  std::vector<bool> cut;
  double moved = 0;   ///< bytes of what is cut
  double weight = 0;  ///< bytes of what is read whole
};

class Search {
 public:
  Search(const RowAnalysis& analysis, double cache, std::vector<RowSlices>& out)
      : analysis_(analysis), cache_(cache), out_(out) {}

  void add(const ir::Operation& operation) {
    if (operation.results.empty() || operation.operands.empty()) return finish();
    const auto dims = analysis_.dims(operation.results[0]);
    const int64_t rows = dims && !dims->empty() ? dims->front() : 0;
    if (rows != rows_) finish();
    rows_ = rows;
    const Cut cut = rows > 1 ? analysis_.operands_cut(operation, rows) : std::nullopt;
    if (!cut) return finish();
    // What is read whole cannot come from a part of the same run.
    const auto depends = [&] {
      for (size_t i = 0; i < cut->size(); ++i)
        if (!(*cut)[i] && given_.count(operation.operands[i]) > 0) return true;
      return false;
    };
    if (depends()) finish();
    Candidate candidate{&operation, *cut};
    for (size_t i = 0; i < cut->size(); ++i) {
      const ir::Value* v = operation.operands[i];
      if (v) ((*cut)[i] ? candidate.moved : candidate.weight) += analysis_.bytes(v);
    }
    for (const ir::Value* v : operation.results) candidate.moved += analysis_.bytes(v);
    if (operation.op->def->view) candidate.moved = 0;
    if (candidate.moved > cache_ * static_cast<double>(rows)) return finish();  // no part fits
    given_.insert(operation.results.begin(), operation.results.end());
    run_.push_back(std::move(candidate));
  }

  /// Takes from the run those parts whose weights stay in the cache as well.
  void finish() {
    for (size_t first = 0; first < run_.size();) {
      size_t end = first, large = 0;
      double weight = 0, most = 0;
      for (size_t i = first; i < run_.size(); ++i) {
        weight += run_[i].weight;
        if (weight > cache_) break;
        if (run_[i].moved <= cache_ && large > 0) continue;
        if (run_[i].moved <= cache_) break;
        ++large;
        end = i + 1;
        most = std::max(most, run_[i].moved);
      }
      if (large >= 2) take(first, end, most);
      first = std::max(end, first + 1);
    }
    run_.clear();
    given_.clear();
  }

 private:
  void take(size_t first, size_t end, double most) {
    RowSlices slices;
    slices.rows = rows_;
    const int64_t limit = std::min(rows_, kMostSlices);
    for (slices.slices = 2; slices.slices <= limit; ++slices.slices)
      if (rows_ % slices.slices == 0 && most <= cache_ * static_cast<double>(slices.slices)) break;
    if (slices.slices > limit) return;
    for (size_t i = first; i < end; ++i) {
      const ir::Operation& operation = *run_[i].operation;
      slices.operations.push_back(&operation);
      slices.cut.insert(operation.results.begin(), operation.results.end());
      for (size_t o = 0; o < run_[i].cut.size(); ++o)
        if (run_[i].cut[o]) slices.cut.insert(operation.operands[o]);
    }
    // A value from before that is read whole by one operation and in parts by another.
    for (size_t i = first; i < end; ++i)
      for (size_t o = 0; o < run_[i].cut.size(); ++o)
        if (!run_[i].cut[o] && slices.cut.count(run_[i].operation->operands[o]) > 0) return;
    out_.push_back(std::move(slices));
  }

  const RowAnalysis& analysis_;
  const double cache_;
  std::vector<RowSlices>& out_;
  std::vector<Candidate> run_;
  std::set<const ir::Value*> given_;
  int64_t rows_ = 0;
};

}  // namespace

std::vector<RowSlices> find_row_slices(const ir::Region& region, const SymbolLookup& symbols,
                                       int64_t cache) {
  std::vector<RowSlices> out;
  if (cache <= 0) return out;
  const RowAnalysis analysis(region, symbols);
  Search search(analysis, static_cast<double>(cache), out);
  for (const auto& operation : region.operations) search.add(*operation);
  search.finish();
  return out;
}

int64_t cache_share() {
  // sysconf adds up the caches of a whole package; a core fills only the one that it shares.
  static const int64_t share = [] {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
    int64_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit) || size <= 0 || size > (int64_t{1} << 20)) return int64_t{0};
    return (unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : 0) / 2;
  }();
  return share;
}

}  // namespace paddle::runtime
