// Rows of tables along the edges of graphs, by segments, and of experts. Edges of a group are
// combined in their order: they are sorted by group, and a thread has a column of a group.

struct EdgeArguments {
  const void *x, *y;  ///< rows [batch, rows, width] and, of a product, [batch, others, width]
  const void *targets, *sources, *weights;  ///< by edge; null: absent
  const void *sorted, *order;  ///< targets in order by batch, and the edges that they come from
  void* out;
  int64_t* places;
  int64_t batch, rows, others, edges, groups, width;
  int64_t heads, each;  ///< weights of an edge, and the columns or indices that share one
  DataError* error;
  int64_t target_site, source_site;
};

/// An index that is in range, 0 for others, which are errors.
PADDLE_DEVICE int64_t row_in(int64_t index, int64_t rows) {
  return index >= 0 && index < rows ? index : 0;
}
PADDLE_DEVICE int64_t checked_row(const EdgeArguments& g, int64_t index, int64_t rows,
                                  int64_t site) {
  if (index < 0 || index >= rows) record_error(g.error, site, index);
  return row_in(index, rows);
}

/// The first place in sorted targets that is not less than `group`.
template <class Target>
PADDLE_DEVICE int64_t first_edge(const Target* sorted, int64_t edges, int64_t group) {
  int64_t low = 0, high = edges;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if ((int64_t)sorted[middle] < group)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <class Target, class Source>
PADDLE_DEVICE void check_edges(const EdgeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, size = g.batch * g.edges;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    checked_row(g, (int64_t)((const Target*)g.targets)[i], g.groups, g.target_site);
    if (g.sources) checked_row(g, (int64_t)((const Source*)g.sources)[i], g.rows, g.source_site);
  }
}

/// Combines the rows of each group's edges, weighted if there are weights. C: the type of sums.
template <class C, class T, class Target, class Source, class Combine, bool kMean>
PADDLE_DEVICE void combine_edges(const EdgeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, size = g.batch * g.groups * g.width;
  const Combine combine;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t line = i / g.width, column = i - line * g.width;
    const int64_t b = line / g.groups, group = line - b * g.groups;
    const Target* const sorted = (const Target*)g.sorted + b * g.edges;
    const int64_t* const order = (const int64_t*)g.order + b * g.edges;
    const T* const x = (const T*)g.x + b * g.rows * g.width + column;
    const int64_t first = first_edge(sorted, g.edges, group);
    C sum = (C)0;
    int64_t at = first;
    for (; at < g.edges && (int64_t)sorted[at] == group; ++at) {
      const int64_t edge = order[at];
      const int64_t row =
          g.sources ? row_in((int64_t)((const Source*)g.sources)[b * g.edges + edge], g.rows)
                    : edge;
      C value = convert<C>(x[row * g.width]);
      if (g.weights) {
        const int64_t weight = (b * g.edges + edge) * g.heads + column / g.each;
        value = (C)(value * convert<C>(((const T*)g.weights)[weight]));
      }
      sum = at == first ? value : (C)combine(sum, value);
    }
    if (kMean && at - first > 1) sum = (C)(sum / (C)(at - first));
    ((T*)g.out)[i] = convert<T>(sum);
  }
}

/// Products of the rows at both ends of an edge, by head.
template <class C, class T, class Source, class Target>
PADDLE_DEVICE void edge_products(const EdgeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, size = g.batch * g.edges * g.heads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t edge = i / g.heads, head = i - edge * g.heads, b = edge / g.edges;
    const int64_t source =
        checked_row(g, (int64_t)((const Source*)g.sources)[edge], g.rows, g.source_site);
    const int64_t target =
        checked_row(g, (int64_t)((const Target*)g.targets)[edge], g.others, g.target_site);
    const T* const x = (const T*)g.x + (b * g.rows + source) * g.width + head * g.each;
    const T* const y = (const T*)g.y + (b * g.others + target) * g.width + head * g.each;
    C sum = (C)0;
    for (int64_t k = 0; k < g.each; ++k) sum += convert<C>(x[k]) * convert<C>(y[k]);
    ((T*)g.out)[i] = convert<T>(sum);
  }
}

/// The rows at indices, of which `each` neighbors name the same row, in range of `groups`. Item: an
/// unsigned type of an element's size.
template <class Source, class Item>
PADDLE_DEVICE void take_rows(const EdgeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, size = g.batch * g.edges * g.width;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t edge = i / g.width, column = i - edge * g.width, b = edge / g.edges;
    const int64_t index =
        checked_row(g, (int64_t)((const Source*)g.sources)[edge], g.groups, g.source_site);
    ((Item*)g.out)[i] = ((const Item*)g.x)[(b * g.rows + index / g.each) * g.width + column];
  }
}

/// The number of edges of each group.
template <class Target>
PADDLE_DEVICE void count_edges(const EdgeArguments& g) {
  const Target* const sorted = (const Target*)g.sorted;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.groups; i += step)
    ((int64_t*)g.out)[i] = first_edge(sorted, g.edges, i + 1) - first_edge(sorted, g.edges, i);
}

/// places[order[i]] = i; places are -1 before. Each index occurs once.
PADDLE_DEVICE void invert_order(const EdgeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.edges; i += step) {
    const int64_t pair = ((const int64_t*)g.order)[i];
    if (pair < 0 || pair >= g.edges)
      record_error(g.error, g.source_site, pair);
    else if (atomicCAS((unsigned long long*)(g.places + pair), ~0ull, (unsigned long long)i) !=
             ~0ull)
      record_error(g.error, g.target_site, pair);
  }
}
/// The sum of `each` rows of a group, which `places` names, weighted if there are weights.
template <class C, class T>
PADDLE_DEVICE void sum_choices(const EdgeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, size = g.groups * g.width;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t group = i / g.width, column = i - group * g.width;
    C sum = (C)0;
    for (int64_t k = group * g.each; k < (group + 1) * g.each; ++k) {
      const int64_t row = row_in(g.places[k], g.edges);
      const C weight = g.weights ? convert<C>(((const T*)g.weights)[k]) : (C)1;
      sum += weight * convert<C>(((const T*)g.x)[row * g.width + column]);
    }
    ((T*)g.out)[i] = convert<T>(sum);
  }
}
