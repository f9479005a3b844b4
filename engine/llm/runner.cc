#include "llm/runner.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "ops/generation/packed_format.h"
#include "paddle/plugin/device.h"
#include "runtime/compile.h"

namespace paddle::llm {

namespace {

/// Plans that are kept: as many as there are sizes of steps.
constexpr size_t kPlans = 32;

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

int64_t bin_of(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, n))));
}

/// Wanted logits are rounded up by more than rows are: there are few of them next to many rows of
/// prompts, and as many as rows where no prompt is read.
int64_t results_bin_of(int64_t results, int64_t rows) {
  int64_t bin = 1;
  while (bin < results) bin *= 4;
  return std::min(bin, rows);
}

size_t input_of(const ir::Function& function, std::string_view name) {
  for (size_t i = 0; i < function.inputs.size(); ++i)
    if (function.inputs[i].kind == ir::PortKind::kValue && function.inputs[i].name == name)
      return i;
  fail(ErrorCode::kModel, "the function 'step' has no input '", name, "'");
}

/// A cache of zeros on the device. Memory of the host is taken where it is written.
Array empty_cache(DType dtype, const Dims& shape, Device device) {
  if (device.is_cpu()) return Array::reserve(dtype, shape);
  Array cache = Array::empty(dtype, shape, device);
  check_device(device, device_api(device).fill(compute_stream(device), cache.address(), 0,
                                               cache.storage->bytes()));
  return cache;
}

/// Bytes of the function's states, the caches.
size_t state_bytes(const ir::Function& function) {
  size_t bytes = 0;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    if (function.inputs[i].kind == ir::PortKind::kState) {
      const TensorType& type = function.body.arguments[i]->type;
      bytes += static_cast<size_t>(
          storage_bytes(type.dtype, element_count(std::span<const int64_t>(concrete(type.shape)))));
    }
  return bytes;
}

}  // namespace

Runner::Runner(std::shared_ptr<LoadedModel> model, const RunnerOptions& options)
    : model_(std::move(model)),
      extents_(static_cast<size_t>(options.sequences + options.kept), SequenceExtent({})),
      generated_(options.sequences) {
  if (options.chunk < 0 || options.chunk > kMaxRows)
    fail(ErrorCode::kUsage, "--chunk is ", options.chunk, ", expected 1 to ", kMaxRows);
  if (options.chunk > 0) chunk_ = options.chunk;
  if (options.context > model_->context())
    fail(ErrorCode::kUsage, "--context is ", options.context, "; the model's context is ",
         model_->context());
  std::unique_ptr<Adapter> adapter;
  if (!options.adapter.empty())
    adapter = std::make_unique<Adapter>(options.adapter, model_->family());
  choose_sizes(options, adapter.get());
  const int64_t table = blocks_ ? std::ssize(blocks_->table()) : 0;
  const auto function = model_->trace({slots_, options.cache, table, context_}, adapter.get());
  for (const SequenceMemory& memory : model_->memories())
    if (memory.kind == MemoryKind::kState || memory.kind == MemoryKind::kEncoded)
      fail(ErrorCode::kModel, "the cache '", memory.state, "' is of the kind ", text(memory.kind),
           "; this program runs models whose caches have a row for each token");
  std::fill(extents_.begin(), extents_.end(), SequenceExtent(model_->memories()));
  tokens_ = input_of(*function, "tokens");
  positions_ = input_of(*function, "positions");
  starts_ = input_of(*function, "starts");
  wanted_ = input_of(*function, "wanted");
  arrays_.resize(function->inputs.size());
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const TensorType& type = function->body.arguments[i]->type;
    if (function->inputs[i].kind == ir::PortKind::kState)
      arrays_[i] = empty_cache(type.dtype, concrete(type.shape), device());
    else if (function->inputs[i].kind == ir::PortKind::kRandom)
      arrays_[i] = Array::zeros(DType::kU64, {2});
  }
  if (blocks_) {
    const std::span<const int64_t> entries = blocks_->table();
    Array& array = arrays_[input_of(*function, "blocks")];
    array.dtype = DType::kI64;
    array.shape = {table};
    array.strides = {1};
    array.storage =
        Storage::borrow(const_cast<int64_t*>(entries.data()), entries.size_bytes(), nullptr);
  }
  const program::LoadOptions& load = model_->options();
  executable_ = runtime::compile(
      function, load.compile,
      {.max_plans = kPlans, .plan = {.profile = load.profile}, .adapt_threads = true},
      load.observe);
  // Passes keep inputs and outputs.
  for (size_t i = 0; i < function->outputs.size(); ++i)
    if (function->outputs[i].kind == ir::PortKind::kValue) logits_ = i;
  const Shape& shape = function->body.results[logits_]->type.shape;
  if (shape.size() != 2 || !shape[1].is_constant())
    fail(ErrorCode::kModel, "the result of the function 'step' is ",
         function->body.results[logits_]->type, ", expected logits [wanted, vocab_size]");
  vocab_size_ = shape[1].value();
}

/// The context, the slots of the caches, and the blocks of a paged one.
void Runner::choose_sizes(const RunnerOptions& options, Adapter* adapter) {
  token_bytes_ = state_bytes(*model_->trace({kKeyBlock, options.cache, 0}, adapter)) / kKeyBlock;
  const size_t memory = available_memory(device());
  // Tokens that half of the memory holds.
  const auto fitting = static_cast<int64_t>(memory / 2 / std::max<size_t>(1, token_bytes_));
  context_ = options.context > 0 ? options.context : model_->context();
  if (options.paged && options.tokens > 0) {
    if (options.context > options.tokens)
      fail(ErrorCode::kUsage, "--context is ", options.context, ", more than the ", options.tokens,
           " tokens of the cache");
    context_ = std::min(context_, options.tokens);
  } else if (options.context == 0) {
    context_ = std::min(context_, fitting / (options.paged ? 1 : options.sequences));
  }
  capacity_ = round_up(context_, kKeyBlock);
  slots_ = capacity_ * options.sequences;
  if (options.paged && options.tokens > 0)
    slots_ = round_up(options.tokens, kKeyBlock);
  else if (options.paged)
    slots_ = round_up(std::clamp(fitting, std::min(capacity_, slots_), slots_), kKeyBlock);
  if (context_ < 1 || static_cast<size_t>(slots_) * token_bytes_ > memory)
    fail(ErrorCode::kDevice, options.paged ? "a cache of " : "a context of ",
         options.paged ? slots_ : context_, " tokens needs ",
         human_bytes(static_cast<size_t>(slots_) * token_bytes_),
         " for keys and values, more than the memory of ", human_bytes(memory));
  if (options.paged)
    blocks_ = std::make_unique<CacheBlocks>(slots_ / kKeyBlock, sequences(), capacity_ / kKeyBlock);
}

int64_t Runner::planned_rows(int64_t rows) { return bin_of(rows); }

int64_t Runner::truncate(int64_t sequence, int64_t length) {
  const int64_t reached = extents_.at(static_cast<size_t>(sequence)).truncate(length);
  if (blocks_) blocks_->shrink(sequence, reached);
  return reached;
}

std::vector<const Array*> Runner::caches() const {
  std::vector<const Array*> out;
  for (size_t i = 0; i < arrays_.size(); ++i)
    if (executable_->function().inputs[i].kind == ir::PortKind::kState) out.push_back(&arrays_[i]);
  return out;
}

void Runner::copy(int64_t from, int64_t to, int64_t length) {
  ensure(length <= this->length(from) && reachable(from, length) == length,
         "copy: tokens of a sequence");
  if (from == to) {
    truncate(to, length);
    return;
  }
  extents_[static_cast<size_t>(to)].copy(extents_[static_cast<size_t>(from)], length);
  if (blocks_) return blocks_->share(from, to, length);
  // The slots of a sequence lie together, in whole blocks of keys.
  copy_slots(from * capacity_, to * capacity_, round_up(length, kKeyBlock));
}

/// Copies keys and values; all numbers are multiples of kKeyBlock.
void Runner::copy_slots(int64_t from, int64_t to, int64_t count) {
  const auto all = caches();
  if (const Device there = device(); !there.is_cpu()) {
    for (const Array* cache : all) {
      const int64_t bytes = storage_bytes(cache->dtype, cache->size()) / slots_;
      auto* const data = static_cast<std::byte*>(cache->address());
      check_device(there, device_api(there).copy(
                              compute_stream(there), data + to * bytes, data + from * bytes,
                              static_cast<size_t>(count * bytes), PADDLE_COPY_ON_DEVICE));
    }
    return;
  }
  constexpr int64_t kMinWorkPerThread = 256;
  parallel_for(std::ssize(all), count < kMinWorkPerThread ? std::ssize(all) : 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const Array& cache = *all[static_cast<size_t>(i)];
                   const int64_t bytes = storage_bytes(cache.dtype, cache.size()) / slots_;
                   auto* const data = static_cast<std::byte*>(cache.raw());
                   std::memcpy(data + to * bytes, data + from * bytes,
                               static_cast<size_t>(count * bytes));
                 }
               });
}

void Runner::trim() {
  if (!blocks_ || !device().is_cpu()) return;
  const int64_t begin = blocks_->extent(), end = blocks_->touched();
  if (begin == end) return;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const Array* cache : caches()) {
    const int64_t bytes = storage_bytes(cache->dtype, cache->size()) / blocks_->total();
    const auto data = reinterpret_cast<uintptr_t>(cache->raw());
    const auto first = (data + static_cast<uintptr_t>(begin * bytes) + page - 1) / page * page;
    const auto last = (data + static_cast<uintptr_t>(end * bytes)) / page * page;
    // Advice: what fails changes nothing.
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  blocks_->reset_touched();
}

/// Gives the sequences of a step the blocks for their tokens.
void Runner::grow(std::span<const StepPart> parts) {
  int64_t needed = 0;
  for (const StepPart& part : parts)
    needed += blocks_needed(part.sequence, length(part.sequence) + std::ssize(part.tokens));
  if (needed > blocks_->free())
    fail(ErrorCode::kDevice, "the cache of ", slots_, " tokens has no room for ",
         needed * kKeyBlock, " more");
  for (const StepPart& part : parts)
    blocks_->grow(
        part.sequence, length(part.sequence), length(part.sequence) + std::ssize(part.tokens),
        [&](int64_t from, int64_t to) { copy_slots(from * kKeyBlock, to * kKeyBlock, kKeyBlock); });
}

/// Rows that are not set compute nothing that is read.
void Runner::set_rows(int64_t rows, int64_t results) {
  arrays_[tokens_] = Array::zeros(DType::kI64, {rows});
  arrays_[starts_] = Array::zeros(DType::kI64, {rows});
  arrays_[positions_] = Array::empty(DType::kI64, {rows});
  std::fill_n(arrays_[positions_].data<int64_t>(), rows, int64_t{-1});
  arrays_[wanted_] = Array::zeros(DType::kI64, {results});
}

const float* Runner::step(std::span<const StepPart> parts) {
  int64_t rows = 0, results = 0;
  for (const StepPart& part : parts) {
    const auto count = static_cast<int64_t>(part.tokens.size());
    ensure(part.wanted >= 0 && part.wanted <= count, "step: wanted logits");
    if (length(part.sequence) + count > context_)
      fail(ErrorCode::kUsage, "the text has more than ", context_, " tokens, the context");
    rows += count;
    results += part.wanted;
  }
  ensure(rows > 0 && rows <= kMaxRows, "step: rows");
  if (blocks_) grow(parts);
  set_rows(bin_of(rows), results_bin_of(results, bin_of(rows)));
  int64_t row = 0, result = 0;
  for (const StepPart& part : parts) {
    SequenceExtent& extent = extents_[static_cast<size_t>(part.sequence)];
    int64_t position = extent.length();
    extent.grow(std::ssize(part.tokens));
    for (const tokenizers::TokenId token : part.tokens) {
      arrays_[tokens_].data<int64_t>()[row] = token;
      arrays_[positions_].data<int64_t>()[row] = position++;
      arrays_[starts_].data<int64_t>()[row++] = part.sequence * capacity_;
    }
    for (int64_t i = part.wanted; i > 0; --i) arrays_[wanted_].data<int64_t>()[result++] = row - i;
  }
  return executable_->run(arrays_)[logits_].data<float>();
}

const float* Runner::append(int64_t sequence, std::span<const tokenizers::TokenId> tokens) {
  const float* logits = nullptr;
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(tokens.size(), static_cast<size_t>(chunk_)));
    tokens = tokens.subspan(part.size());
    const StepPart one{sequence, part, tokens.empty() ? 1 : 0};
    logits = step({&one, 1});
  }
  return logits;
}

void Runner::append_all(int64_t sequence, std::span<const tokenizers::TokenId> tokens, float* out) {
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(tokens.size(), static_cast<size_t>(chunk_)));
    tokens = tokens.subspan(part.size());
    const StepPart all{sequence, part, static_cast<int64_t>(part.size())};
    const auto count = static_cast<int64_t>(part.size()) * vocab_size_;
    std::copy_n(step({&all, 1}), count, out);
    out += count;
  }
}

double Runner::flops(int64_t length) {
  double total = 0;
  for (; length > 0; length -= kMaxRows) {
    const int64_t rows = std::min(length, kMaxRows);
    set_rows(rows, rows);
    total += plan().flops();
  }
  return total;
}

bool Runner::prepare_next() {
  for (; prepared_rows_ <= kMaxRows; prepared_rows_ *= 2, prepared_results_ = 1) {
    if (prepared_results_ > prepared_rows_) continue;
    set_rows(prepared_rows_, prepared_results_);
    const size_t bytes = plan().arena_bytes();
    if (prepared_results_ <= results_bin_of(generated_, prepared_rows_))
      largest_values_ = std::max(largest_values_, bytes);
    prepared_results_ = prepared_results_ == prepared_rows_
                            ? 2 * prepared_rows_
                            : std::min(4 * prepared_results_, prepared_rows_);
    return true;
  }
  if (largest_values_ > 0) executable_->reserve_arena(std::exchange(largest_values_, 0));
  return false;
}

runtime::Plan& Runner::plan() {
  std::vector<Layout> layouts;
  for (const Array& array : arrays_) layouts.push_back(Layout::of(array));
  return executable_->plan(layouts);
}

std::vector<std::string> Runner::kernels(int64_t rows) {
  set_rows(bin_of(rows), bin_of(rows));
  std::set<std::string> names;
  for (const runtime::Instruction& instruction : plan().instructions()) {
    if (!instruction.kernel || !instruction.operation) continue;
    const std::string_view op = instruction.operation->op->name();
    if (op == "packed_linear" || op == "packed_linears" || op == "cached_attention")
      names.insert(str(op, " ", instruction.kernel->implementation()));
  }
  return {names.begin(), names.end()};
}

}  // namespace paddle::llm
