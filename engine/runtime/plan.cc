#include "runtime/plan.h"
#include "runtime/loop_limit.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <tuple>

#include "base/crash_report.h"
#include "base/log.h"
#include "base/source_location.h"
#include "ops/core/call.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"
#include "runtime/plan_builder.h"
#include "runtime/plan_graphs.h"
#include "runtime/plan_names.h"
#include "runtime/plan_streams.h"
#include "tensor/device_functions.h"

namespace paddle::runtime {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Plan::Plan(const ir::Function& function, const std::vector<Layout>& inputs, PlanOptions options)
    : function_(function), options_(options), inputs_(inputs.size()) {
  register_backends();
  if (!options_.target.device.is_cpu()) {
    options_.check_memory = false;
    streams_ = std::make_unique<PlanStreams>(options_.target.device);
  }
  PlanBuilder(*this, inputs).build();
  if (is_logged(LogLevel::kDebug))
    log(LogLevel::kDebug,
        str("'", function.name, "': plan of ", instructions_.size(), " instructions on ",
            options_.target.device.text(), ", ", human_bytes(memory().total()), " of memory"));
  const Device device = options_.target.device;
  // A profile has a time for each operation.
  if (streams_ && !options_.profile) merge_kernels();
  if (streams_ && options_.graphs != compiler::GraphMode::kOff && has_graphs(device)) {
    graphs_ = std::make_unique<PlanGraphs>(device);
    graphs_->find_segments(instructions_);
  }
  const auto bytes = static_cast<int64_t>(memory().total());
  if (const int64_t limit = options_.target.memory; limit > 0 && bytes > limit)
    fail(ErrorCode::kDevice, "'", function.name, "' needs ", human_bytes(memory().total()),
         ", and its target states ", human_bytes(static_cast<uint64_t>(limit)));
  if (!options_.profile) return;
  options_.profile->plans.push_back(describe_memory());
  describe(instructions_);
}

Plan::~Plan() = default;

std::optional<int64_t> Plan::symbol(const std::string& name) const {
  if (const auto it = symbols_.find(name); it != symbols_.end()) return it->second;
  return std::nullopt;
}

MemoryReport Plan::memory() const {
  MemoryReport report;
  report.arena = arena_bytes_;
  report.scratch = scratch_bytes_;
  for (const Buffer& b : buffers_) {
    if (b.kind == BufferKind::kInput) report.inputs += b.bytes;
    if (b.kind == BufferKind::kConstant) report.constants += b.bytes;
  }
  return report;
}

PlanInfo Plan::describe_memory() const {
  using Held = PlanInfo::Input;
  const MemoryReport report = memory();
  PlanInfo info;
  info.function = function_.name;
  info.device = options_.target.device.text();
  info.arena = report.arena;
  info.scratch = report.scratch;
  info.inputs = report.inputs;
  info.constants = report.constants;
  for (const Buffer& b : buffers_) {
    if (b.kind == BufferKind::kArena && b.bytes > 0)
      info.buffers.push_back({b.label, b.bytes, b.first, b.last});
    if (b.kind != BufferKind::kInput) continue;
    const ir::Port& port = function_.inputs[b.input];
    info.held.push_back({port.name,
                         port.kind == ir::PortKind::kParameter ? Held::Kind::kParameter
                         : port.kind == ir::PortKind::kState   ? Held::Kind::kState
                                                               : Held::Kind::kValue,
                         b.bytes});
  }
  return info;
}

std::vector<std::pair<std::string, size_t>> Plan::largest(size_t count) const {
  std::vector<std::pair<std::string, size_t>> out;
  for (const Buffer& b : buffers_)
    if (b.kind == BufferKind::kArena) out.push_back({b.label, b.bytes});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  out.resize(std::min(out.size(), count));
  return out;
}

std::string Plan::trace_line(const Instruction& i) const {
  const auto list = [&](const std::vector<int>& ids) {
    std::string out;
    for (const int id : ids) {
      if (id < 0) continue;
      const Layout& l = value_buffers_[static_cast<size_t>(id)].layout;
      out += str(out.empty() ? "" : ", ", text(l.dtype), l.shape);
    }
    return out;
  };
  std::string out = i.operation ? described(*i.operation, i.results) : "copy";
  out += str(" ", list(i.operands), " -> ", list(i.results));
  if (i.kernel) out += str(" (", i.kernel->implementation(), ")");
  const std::string origin = i.operation ? origin_of(*i.operation) : "";
  return origin.empty() ? out : out + " at " + origin;
}

void Plan::describe(std::vector<Instruction>& block) {
  for (Instruction& i : block) {
    for (auto& nested : i.blocks) describe(nested);
    if (!i.blocks.empty()) continue;
    InstructionInfo info;
    info.function = function_.name;
    info.operation = i.operation ? described(*i.operation, i.results) : "copy";
    info.implementation = i.kernel                                 ? i.kernel->implementation()
                          : i.kind == Instruction::Kind::kCopyIn   ? "copy to device"
                          : i.kind == Instruction::Kind::kReadBack ? "copy to host"
                                                                   : "dynamic";
    info.device = info.implementation.starts_with(kOnHost) ? "cpu" : options_.target.device.text();
    info.flops = flops_of(i);
    info.origin = i.operation ? origin_of(*i.operation) : "";
    info.plan = static_cast<int>(options_.profile->plans.size()) - 1;
    info.position = i.position;
    const auto list = [&](const std::vector<int>& ids) {
      std::string out;
      for (const int id : ids) {
        if (id < 0) continue;
        const Layout& l = value_buffers_[static_cast<size_t>(id)].layout;
        info.bytes += static_cast<double>(storage_bytes(l.dtype, l.size()));
        out += str(out.empty() ? "" : " x ", text(l.dtype), str(l.shape));
      }
      return out;
    };
    info.shapes = list(i.operands) + " -> ";
    info.shapes += list(i.results);
    i.profile = options_.profile->add(std::move(info));
  }
}

namespace {

/// The memory of a constant on a device. Plans share it, as long as one of them lives.
std::shared_ptr<Storage> copy_of_constant(const Array& constant, Device device) {
  struct Copies {
    std::mutex mutex;
    std::map<std::tuple<const void*, size_t, int, int>,
             std::pair<std::weak_ptr<Storage>, std::weak_ptr<Storage>>>
        by_source;
  };
  static Copies all;
  const auto bytes = static_cast<size_t>(storage_bytes(constant.dtype, constant.size()));
  const std::lock_guard lock(all.mutex);
  const std::tuple key{static_cast<const void*>(constant.raw()), bytes, int{device.kind},
                       int{device.index}};
  // The address may be that of an array that is gone.
  if (const auto it = all.by_source.find(key); it != all.by_source.end())
    if (it->second.first.lock() == constant.storage)
      if (auto existing = it->second.second.lock()) return existing;
  std::erase_if(all.by_source, [](const auto& entry) {
    return entry.second.first.expired() || entry.second.second.expired();
  });
  const std::shared_ptr<Storage> made = constant.to(device).storage;
  all.by_source[key] = {constant.storage, made};
  return made;
}

}  // namespace

std::shared_ptr<Storage> Plan::constant_on_device(const Buffer& buffer) const {
  return copy_of_constant(*buffer.constant, options_.target.device);
}

void* Plan::address(int value) const {
  const ValueBuffer& p = value_buffers_[static_cast<size_t>(value)];
  const Buffer& b = buffers_[static_cast<size_t>(p.buffer)];
  std::byte* base = nullptr;
  switch (b.kind) {
    case BufferKind::kInput:
      base = static_cast<std::byte*>(inputs_[b.input]);
      break;
    case BufferKind::kConstant:
      if (streams_ && !b.on_device) b.on_device = constant_on_device(b);
      base = b.on_device ? b.on_device->address() : static_cast<std::byte*>(b.constant->raw());
      break;
    case BufferKind::kStaged:
      base = is_in_place(b.input) ? static_cast<std::byte*>(inputs_[b.input])
                                  : b.staged[turn_]->address() + b.offset;
      break;
    case BufferKind::kArena:
      base = arena_ + b.offset;
      break;
  }
  return base ? base + p.layout.offset * item_size(p.layout.dtype) : nullptr;
}

void Plan::resolve(std::vector<Instruction>& block, bool inputs_only) {
  const auto fill = [&](const std::vector<int>& ids, std::vector<void*>& data,
                        const Kernel* reader) {
    data.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      const ValueBuffer& p = value_buffers_[static_cast<size_t>(ids[i])];
      if (p.buffer < 0) continue;
      const Buffer& buffer = buffers_[static_cast<size_t>(p.buffer)];
      if (inputs_only && buffer.kind != BufferKind::kInput && buffer.kind != BufferKind::kStaged)
        continue;
      if (buffer.kind == BufferKind::kConstant && reader && !reader->reads(i)) continue;
      data[i] = address(ids[i]);
    }
  };
  for (Instruction& instruction : block) {
    fill(instruction.operands, instruction.operand_data, instruction.kernel.get());
    fill(instruction.results, instruction.result_data, nullptr);
    if (instruction.scratch >= 0)
      instruction.scratch_data = arena_ + buffers_[static_cast<size_t>(instruction.scratch)].offset;
    for (auto& nested : instruction.blocks) resolve(nested, inputs_only);
  }
}

void Plan::set_arena(std::byte* base) {
  arena_ = base;
  if (graphs_) graphs_->clear();
  resolve(instructions_, false);
}

GraphReport Plan::graph_report() const { return graphs_ ? graphs_->report() : GraphReport{}; }

void Plan::run(const std::vector<void*>& inputs, const std::vector<uint8_t>& on_device) {
  const bool turns = streams_ && streams_->stages();
  if (turns) turn_ = 1 - turn_;
  if (turns || inputs != inputs_) {
    inputs_ = inputs;
    on_device_ = on_device;
    resolve(instructions_, true);
  }
  run_time_symbols_.clear();
  if (check_) check_->begin(arena_, arena_bytes());
  if (streams_) streams_->begin(inputs_, on_device_, turn_);
  if (graphs_) graphs_->begin(streams_->device_addresses(), turn_);
  run_block(instructions_);
  set_running_operation(nullptr);
  if (streams_) streams_->join_copies();
  for (const auto& [value, input] : write_back_) copy_to(inputs_[input], packed(array_of(value)));
  if (graphs_) graphs_->finish();
  if (streams_) streams_->finish();
}

void Plan::copy_to(void* address, const Array& array) {
  const auto bytes = static_cast<size_t>(storage_bytes(array.dtype, array.size()));
  if (streams_)
    streams_->copy(address, array.address(), bytes);
  else
    std::memmove(address, array.raw(), bytes);
}

namespace {

/// An error of a running operation with its source location. Arguments that were valid at compile
/// time are invalid because of the data, so kUsage becomes kData.
Error with_location(const Error& error, const ir::Operation* operation) {
  const ErrorCode code = error.code() == ErrorCode::kUsage ? ErrorCode::kData : error.code();
  SourceLocation location = error.location();
  if (location.line == 0 && location.file.empty() && operation)
    location = parse_source_location(operation->location);
  Error out(code, error.message(), location);
  for (const std::string& note : error.notes()) out.note(note);
  return out;
}

}  // namespace

void Plan::execute(Instruction& instruction, const RunContext& context) {
  switch (instruction.kind) {
    case Instruction::Kind::kKernel:
      instruction.kernel->run(context, instruction.operand_data.data(),
                              instruction.result_data.data());
      break;
    case Instruction::Kind::kDynamic:
      run_dynamic(instruction);
      break;
    case Instruction::Kind::kTiles:
      run_tiles(instruction);
      break;
    case Instruction::Kind::kBranch: {
      const size_t taken = truth(instruction.operands[0]) ? 0 : 1;
      run_block(instruction.blocks[taken]);
      for (const auto& [from, to] : instruction.block_copies[taken]) copy_value(from, to);
      break;
    }
    case Instruction::Kind::kLoop:
      run_loop(instruction);
      break;
    case Instruction::Kind::kCopyIn:
      streams_->copy_in(static_cast<size_t>(instruction.staging));
      break;
    case Instruction::Kind::kReadBack: {
      const int value = instruction.operands[0];
      const Layout& layout = value_buffers_[static_cast<size_t>(value)].layout;
      streams_->read_back(value, address(value), static_cast<size_t>(item_size(layout.dtype)));
      break;
    }
  }
}

void Plan::run_loop(Instruction& instruction) {
  for (const auto& [from, to] : instruction.initial_copies) copy_value(from, to);
  const int64_t limit = instruction.max_steps < 0 ? max_loop_iterations() : 0;
  for (int64_t iteration = 0; instruction.max_steps < 0 || iteration < instruction.max_steps;
       ++iteration) {
    run_block(instruction.blocks[0]);
    if (!truth(instruction.operands[0])) break;
    if (limit > 0 && iteration >= limit)
      fail(ErrorCode::kData, "the loop has not ended after ", limit, " iterations");
    run_block(instruction.blocks[1]);
    for (const auto& [from, to] : instruction.block_copies[1]) copy_value(from, to);
    for (const auto& [from, to] : instruction.block_copies[2]) copy_value(from, to);
  }
  for (size_t i = 0; i < instruction.results.size(); ++i)
    if (value_buffers_[static_cast<size_t>(instruction.results[i])].dynamic)
      store_dynamic(instruction.results[i],
                    dynamic_[static_cast<size_t>(instruction.initial_copies[i].second)]);
}

void Plan::run_block(std::vector<Instruction>& block) {
  const Instruction* current = nullptr;
  try {
    run_instructions(block, current);
  } catch (const Error& error) {
    throw with_location(error, current ? current->operation : nullptr);
  }
}

void Plan::run_instructions(std::vector<Instruction>& block, const Instruction*& current) {
  RunContext context;
  context.collectives = options_.collectives;
  // Instructions that are timed or printed run one by one.
  const bool uses_graphs =
      graphs_ && !(options_.profile && options_.profile->recording) && !is_logged(LogLevel::kTrace);
  for (size_t i = 0; i < block.size(); ++i) {
    if (uses_graphs && block[i].segment >= 0) {
      const size_t length = graphs_->length(block[i].segment);
      if (run_segment(block, i, current)) {
        i += length - 1;
        continue;
      }
    }
    current = &block[i];
    // Copies that pack operands have the position of the operation that reads them.
    const bool last = i + 1 == block.size() || block[i + 1].position != block[i].position;
    run_instruction(block[i], context, last);
  }
}

void Plan::run_instruction(Instruction& instruction, RunContext& context, bool last) {
  context.scratch = instruction.scratch_data;
  if (const ir::Operation* const operation = instruction.operation)
    set_running_operation(operation->op->def->name, operation->location.c_str());
  if (is_logged(LogLevel::kTrace)) log(LogLevel::kTrace, trace_line(instruction));
  context.location = instruction.operation ? &instruction.operation->location : nullptr;
  if (check_) check_->before(instruction, arena_);
  if (streams_) {
    streams_->before(instruction);
    context.stream = streams_->stream(instruction);
  }
  if (instruction.profile < 0 || !options_.profile->recording) {
    execute(instruction, context);
  } else {
    const int64_t begin = now();
    execute(instruction, context);
    synchronize(options_.target.device);
    options_.profile->record(instruction.profile, begin, now());
  }
  if (streams_) streams_->after(instruction);
  if (check_) check_->after(instruction, arena_, last);
}

bool Plan::run_segment(std::vector<Instruction>& block, size_t first, const Instruction*& current) {
  const int segment = block[first].segment;
  current = &block[first];
  streams_->before(block[first]);  // the only one that waits for copies
  if (graphs_->replay(segment)) return true;
  if (!graphs_->is_recording()) return false;
  RunContext context;
  context.collectives = options_.collectives;
  context.stream = graphs_->begin_recording();
  try {
    for (size_t i = first; i < first + graphs_->length(segment); ++i) {
      current = &block[i];
      context.scratch = block[i].scratch_data;
      context.location = block[i].operation ? &block[i].operation->location : nullptr;
      execute(block[i], context);
    }
  } catch (...) {
    graphs_->drop_recording();
    throw;
  }
  graphs_->end_recording(segment);
  return true;
}

void Plan::run_tiles(Instruction& instruction) {
  std::vector<Instruction>& block = instruction.blocks[0];
  for (int64_t tile = 0; tile < instruction.tiles; ++tile) {
    const auto move = [&](const std::vector<int>& ids, std::vector<void*>& data) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const int64_t tile_stride =
            ids[i] < 0 ? 0 : value_buffers_[static_cast<size_t>(ids[i])].tile_stride;
        if (tile_stride != 0)
          data[i] = static_cast<std::byte*>(address(ids[i])) + tile * tile_stride;
      }
    };
    for (Instruction& i : block) {
      move(i.operands, i.operand_data);
      move(i.results, i.result_data);
    }
    run_block(block);
  }
}

Array Plan::array_of(int value) const {
  const ValueBuffer& p = value_buffers_[static_cast<size_t>(value)];
  if (p.dynamic) return dynamic_[static_cast<size_t>(value)];
  Array out;
  out.dtype = p.layout.dtype;
  out.shape = p.layout.shape;
  out.strides = p.layout.strides;
  // Borrowed from the first element; negative strides may address memory before it.
  out.storage = Storage::borrow(address(value), 0, nullptr, options_.target.device);
  return out;
}

bool Plan::truth(int value) {
  const ValueBuffer& p = value_buffers_[static_cast<size_t>(value)];
  Array array = array_of(value);
  if (p.dynamic) return array.on_host().number() != 0;
  if (streams_)
    array.storage = Storage::borrow(const_cast<void*>(streams_->condition(value)), 0, nullptr);
  return array.number() != 0;
}

void Plan::store_dynamic(int value, Array array) {
  const ir::Value* v = values_[static_cast<size_t>(value)];
  if (v)
    for (size_t i = 0; i < v->type.shape.size() && i < array.shape.size(); ++i)
      if (v->type.shape[i].is_symbol()) run_time_symbols_[v->type.shape[i].text()] = array.shape[i];
  dynamic_[static_cast<size_t>(value)] = std::move(array);
}

void Plan::copy_value(int from, int to) {
  const ValueBuffer& target = value_buffers_[static_cast<size_t>(to)];
  if (target.dynamic) return store_dynamic(to, copied(array_of(from)));
  const Array source = packed(array_of(from));
  if (source.shape != target.layout.shape)
    fail(ErrorCode::kUsage, "a value of shape ", str(source.shape), " does not fit one of shape ",
         str(target.layout.shape));
  copy_to(address(to), source);
}

void Plan::run_dynamic(Instruction& instruction) {
  const ir::Operation& operation = *instruction.operation;
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    if (const auto it = run_time_symbols_.find(name); it != run_time_symbols_.end())
      return it->second;
    return symbol(name);
  };
  const Attrs attrs = bind_attrs(operation.attrs, lookup);
  std::vector<Array> arrays(instruction.operands.size());
  std::vector<const Array*> operands(instruction.operands.size());
  Tensors tensors(instruction.operands.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (instruction.operands[i] < 0) continue;
    arrays[i] = array_of(instruction.operands[i]);
    operands[i] = &arrays[i];
    tensors[i] = Tensor(arrays[i]);
  }
  const Inferred inferred = infer_results(*operation.op, attrs, tensors);
  for (const DimConstraint& c : inferred.constraints) {
    const auto left = c.left.evaluate(lookup), right = c.right.evaluate(lookup);
    if (left && right && *left != *right)
      fail(ErrorCode::kData, c.what, " (", *left, " against ", *right, ")");
  }
  std::vector<Array> results =
      runtime::execute(*operation.op, attrs, operands, inferred.results, options_.target,
                       options_.prepare, options_.collectives);
  for (size_t i = 0; i < results.size(); ++i) {
    const int id = instruction.results[i];
    // A view of planned memory must not outlive the buffer, so it is copied.
    if (value_buffers_[static_cast<size_t>(id)].dynamic) {
      store_dynamic(id, operation.op->def->view ? copied(results[i]) : std::move(results[i]));
    } else {
      copy_to(address(id), packed(results[i]));
    }
  }
}

bool Plan::output_moves(size_t i) const {
  const ValueBuffer& p = value_buffers_[static_cast<size_t>(outputs_[i])];
  return p.dynamic || buffers_[static_cast<size_t>(p.buffer)].kind == BufferKind::kInput;
}

Array Plan::output(size_t i) const { return array_of(outputs_[i]); }

}  // namespace paddle::runtime
