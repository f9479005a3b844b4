// Sampling of neighbors in graphs of compressed columns, and numbering of the nodes found.

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "kernels/common/read_values.h"
#include "ops/core/rules.h"
#include "ops/generated/graph.h"
#include "tensor/random.h"

namespace paddle::cpu {
namespace {

/// A result of integers of any width.
void put(ResultAllocator* allocator, size_t index, DType dtype, const Dims& shape,
         const std::vector<int64_t>& values) {
  void* const out = allocator->allocate(index, shape);
  if (!values.empty())
    convert_fn(DType::kI64, dtype)(values.data(), 1, out, static_cast<int64_t>(values.size()));
}

Dims length_of(const std::vector<int64_t>& values) { return {static_cast<int64_t>(values.size())}; }

/// Numbers in the order in which nodes are first seen.
class Numbering {
 public:
  int64_t of(int64_t node) {
    const auto [at, added] = numbers_.try_emplace(node, static_cast<int64_t>(nodes_.size()));
    if (added) nodes_.push_back(node);
    return at->second;
  }
  const std::vector<int64_t>& nodes() const { return nodes_; }

 private:
  std::unordered_map<int64_t, int64_t> numbers_;
  std::vector<int64_t> nodes_;
};

/// A graph whose column i has the edges colptr[i] to colptr[i + 1].
struct Graph {
  std::string_view op;
  std::vector<int64_t> row, columns;
  std::vector<double> weights;  ///< per edge; empty: equal
  const Random* random;
  uint64_t drawn = 0;

  Graph(std::string_view name, const Layout& row_layout, const void* row_data,
        const Layout& column_layout, const void* column_data, const Random& source)
      : op(name),
        row(values_of<int64_t>(row_layout, row_data)),
        columns(values_of<int64_t>(column_layout, column_data)),
        random(&source) {
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i] < (i == 0 ? 0 : columns[i - 1]) ||
          columns[i] > static_cast<int64_t>(row.size()))
        fail(ErrorCode::kData, op, ": colptr has ", columns[i],
             "; it must grow up to the length of row, ", row.size());
  }

  /// Edges of a node, at most `limit` (all if negative), in order.
  std::vector<int64_t> edges(int64_t node, int64_t limit) {
    if (node < 0 || node + 1 >= static_cast<int64_t>(columns.size()))
      fail(ErrorCode::kData, op, ": node ", node, " is not one of ",
           columns.empty() ? 0 : columns.size() - 1);
    const int64_t begin = columns[static_cast<size_t>(node)],
                  end = columns[static_cast<size_t>(node) + 1];
    std::vector<int64_t> out;
    if (limit < 0 || end - begin <= limit) {
      for (int64_t e = begin; e < end; ++e) out.push_back(e);
      return out;
    }
    // The largest keys of log(u) / weight are a sample without replacement.
    std::vector<std::pair<double, int64_t>> keys;
    for (int64_t e = begin; e < end; ++e) {
      const double u = random->uniform(drawn++);
      const double weight = weights.empty() ? 1 : weights[static_cast<size_t>(e)];
      if (!(weight >= 0)) fail(ErrorCode::kData, op, ": edge_weight has ", weight);
      keys.emplace_back(weight > 0 ? -std::log(1 - u) / weight : INFINITY, e);
    }
    std::nth_element(keys.begin(), keys.begin() + limit, keys.end());
    for (int64_t i = 0; i < limit; ++i) out.push_back(keys[static_cast<size_t>(i)].second);
    std::sort(out.begin(), out.end());
    return out;
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_sample_neighbors(const KernelRequest& request) {
  const auto attr = [&](const char* name) -> const AttrValue& {
    return request.attrs[static_cast<size_t>(request.op.attr_index(name))];
  };
  const int64_t limit = attr("sample_size").as_int(), stream = attr("stream").as_int();
  const bool with_edges = attr("return_eids").as_bool();
  const std::vector<Layout> layouts(request.operands.begin(), request.operands.end());
  const auto at = [&](const char* name) {
    return static_cast<size_t>(request.op.operand_index(name));
  };
  const bool weighted = request.op.operand_index("edge_weight") >= 0;
  const size_t nodes_at = at("input_nodes"), eids_at = at("eids"), state = layouts.size() - 1;
  return make_kernel([=, op = std::string(request.op.name())](const RunContext& context,
                                                              void* const* operands, void* const*) {
    const uint64_t* const values = static_cast<const uint64_t*>(operands[state]);
    const Random random(values[0], static_cast<uint64_t>(stream), values[1]);
    Graph graph(op, layouts[0], operands[0], layouts[1], operands[1], random);
    if (weighted) graph.weights = values_of<double>(layouts[2], operands[2]);
    std::vector<int64_t> ids;
    if (with_edges) ids = values_of<int64_t>(layouts[eids_at], operands[eids_at]);
    std::vector<int64_t> out, counts, edges;
    for (const int64_t node : values_of<int64_t>(layouts[nodes_at], operands[nodes_at])) {
      const auto own = graph.edges(node, limit);
      counts.push_back(static_cast<int64_t>(own.size()));
      for (const int64_t e : own) {
        out.push_back(graph.row[static_cast<size_t>(e)]);
        if (with_edges) edges.push_back(ids[static_cast<size_t>(e)]);
      }
    }
    put(context.allocator, 0, layouts[0].dtype, length_of(out), out);
    put(context.allocator, 1, DType::kI32, length_of(counts), counts);
    if (with_edges) put(context.allocator, 2, layouts[eids_at].dtype, length_of(edges), edges);
  });
}

std::unique_ptr<Kernel> prepare_reindex_graph(const KernelRequest& request) {
  const std::vector<Layout> layouts(request.operands.begin(), request.operands.end());
  const OperandMap map(request.op, request.attrs);
  const size_t first = map.begin(1), count_first = map.begin(2), kinds = map.end(1) - first;
  return make_kernel([=, op = std::string(request.op.name())](const RunContext& context,
                                                              void* const* operands, void* const*) {
    Numbering numbering;
    std::vector<int64_t> nodes = values_of<int64_t>(layouts[0], operands[0]), sources, targets;
    for (const int64_t node : nodes) numbering.of(node);
    for (size_t k = 0; k < kinds; ++k) {
      const auto neighbors = values_of<int64_t>(layouts[first + k], operands[first + k]);
      const auto counts = values_of<int64_t>(layouts[count_first + k], operands[count_first + k]);
      for (const int64_t node : neighbors) sources.push_back(numbering.of(node));
      int64_t sum = 0;
      for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] < 0 || counts[i] > static_cast<int64_t>(neighbors.size()) - sum)
          fail(ErrorCode::kData, op, ": count does not add up to the ", neighbors.size(),
               " neighbors");
        sum += counts[i];
        targets.insert(targets.end(), static_cast<size_t>(counts[i]), numbering.of(nodes[i]));
      }
      if (sum != static_cast<int64_t>(neighbors.size()))
        fail(ErrorCode::kData, op, ": count adds up to ", sum, ", there are ", neighbors.size(),
             " neighbors");
    }
    const DType dtype = layouts[0].dtype;
    put(context.allocator, 0, dtype, length_of(sources), sources);
    put(context.allocator, 1, dtype, length_of(targets), targets);
    put(context.allocator, 2, dtype, length_of(numbering.nodes()), numbering.nodes());
  });
}

std::unique_ptr<Kernel> prepare_graph_khop_sampler(const KernelRequest& request) {
  const GraphKhopSamplerAttrs attrs(request.attrs);
  const std::vector<Layout> layouts(request.operands.begin(), request.operands.end());
  const size_t state = layouts.size() - 1;
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const uint64_t* const values = static_cast<const uint64_t*>(operands[state]);
    const Random random(values[0], static_cast<uint64_t>(attrs.stream), values[1]);
    Graph graph("graph_khop_sampler", layouts[0], operands[0], layouts[1], operands[1], random);
    std::vector<int64_t> ids;
    if (attrs.return_eids) ids = values_of<int64_t>(layouts[3], operands[3]);
    if (attrs.return_eids && ids.size() != graph.row.size())
      fail(ErrorCode::kData, "graph_khop_sampler: sorted_eids has ", ids.size(), " edges, row has ",
           graph.row.size());
    Numbering numbering;
    std::vector<int64_t> sources, targets, edges, inputs;
    for (const int64_t node : values_of<int64_t>(layouts[2], operands[2]))
      inputs.push_back(numbering.of(node));
    // Each hop starts from the nodes that the one before found.
    size_t begin = 0;
    for (const int64_t limit : attrs.sample_sizes) {
      const size_t end = numbering.nodes().size();
      for (size_t i = begin; i < end; ++i)
        for (const int64_t e : graph.edges(numbering.nodes()[i], limit)) {
          sources.push_back(numbering.of(graph.row[static_cast<size_t>(e)]));
          targets.push_back(static_cast<int64_t>(i));
          if (attrs.return_eids) edges.push_back(ids[static_cast<size_t>(e)]);
        }
      begin = end;
    }
    const DType dtype = layouts[0].dtype;
    const auto count = static_cast<int64_t>(sources.size());
    put(context.allocator, 0, dtype, {count, 1}, sources);
    put(context.allocator, 1, dtype, {count, 1}, targets);
    put(context.allocator, 2, dtype, length_of(numbering.nodes()), numbering.nodes());
    put(context.allocator, 3, dtype, length_of(inputs), inputs);
    if (attrs.return_eids) put(context.allocator, 4, layouts[3].dtype, length_of(edges), edges);
  });
}

}  // namespace paddle::cpu
