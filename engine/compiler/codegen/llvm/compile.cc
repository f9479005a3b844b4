// The entry point of the module: compiles a program to LLVM IR, that to an object file, and links
// it to position-independent code.

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>

#include "compiler/codegen/llvm/interface.h"
#include "compiler/codegen/llvm/link.h"
#include "compiler/codegen/llvm/vectors.h"

namespace paddle::codegen {
namespace {

constexpr char kEntry[] = "group";

/// The CPU features that Highway requires for the same vector width.
const char* features(int vector_bytes) {
  return vector_bytes == 64
             ? "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+avx512f,+avx512vl,+avx512dq,+avx512bw"
             : "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt";
}

struct ContextDeleter {
  void operator()(LLVMContextRef c) const { LLVMContextDispose(c); }
};
struct ModuleDeleter {
  void operator()(LLVMModuleRef m) const { LLVMDisposeModule(m); }
};
struct BuilderDeleter {
  void operator()(LLVMBuilderRef b) const { LLVMDisposeBuilder(b); }
};
struct MachineDeleter {
  void operator()(LLVMTargetMachineRef m) const { LLVMDisposeTargetMachine(m); }
};
struct BufferDeleter {
  void operator()(LLVMMemoryBufferRef b) const { LLVMDisposeMemoryBuffer(b); }
};
template <class Ref, class Deleter>
using Owned = std::unique_ptr<std::remove_pointer_t<Ref>, Deleter>;

/// Emits the function of a program: a loop over rows with full vectors and a masked one for the
/// rest.
class FunctionWriter {
 public:
  FunctionWriter(LLVMContextRef context, LLVMModuleRef module, LLVMBuilderRef builder,
                 const Program& program, int vector_bytes)
      : context_(context),
        module_(module),
        builder_(builder),
        program_(program),
        vectors_(context, module, builder, vector_bytes),
        i64_(LLVMInt64TypeInContext(context)),
        pointer_(LLVMPointerTypeInContext(context, 0)),
        values_(program.nodes.size()) {}

  void write() {
    declare();
    const auto block = [&](const char* name) {
      return LLVMAppendBasicBlockInContext(context_, function_, name);
    };
    const LLVMBasicBlockRef entry = block("entry"), start = block("start"), row = block("row"),
                            whole = block("whole"), rest = block("rest"), tail = block("tail"),
                            next = block("next"), done = block("done");
    const Value rows = LLVMGetParam(function_, 2), n = LLVMGetParam(function_, 3);
    // Lane reductions have two vectors of accumulators, which the vectors of a step enter in turn,
    // or in groups.
    const auto any_fold = [&](const auto& is) {
      return std::any_of(program_.folds.begin(), program_.folds.end(), is);
    };
    const uint64_t lanes = any_fold([](const Fold&fold) { return fold.lanes; }) ? 2 : 1,
                   group =
                       any_fold([&](const Fold&fold) { return in_groups(fold); }) ? kGroup : lanes,
                   vectors = group * static_cast<uint64_t>(program_.unroll),
                   step = vectors * vectors_.lanes();
    waiting_.resize(program_.folds.size());
    const Value zero = number(0);

    at(entry);
    const Value some =
        LLVMBuildAnd(builder_, compare(LLVMIntSGT, rows, zero), compare(LLVMIntSGT, n, zero), "");
    LLVMBuildCondBr(builder_, some, start, done);

    at(start);
    const size_t count =
        static_cast<size_t>(program_.reads) + program_.stores.size() + program_.folds.size();
    std::vector<Value> first, strides;
    for (size_t i = 0; i < count; ++i) {
      first.push_back(load(pointer_, element(LLVMGetParam(function_, 0), pointer_, number(i))));
      strides.push_back(load(i64_, element(LLVMGetParam(function_, 1), i64_, number(i))));
    }
    pointers_ = first;
    const Value covered = LLVMBuildAnd(builder_, n, LLVMConstInt(i64_, ~(step - 1), 0), "");
    const Value left = LLVMBuildSub(builder_, n, covered, "");
    std::vector<Value> masks;
    for (uint64_t v = 0; v < vectors; ++v) masks.push_back(mask_of(left, v * vectors_.lanes()));
    write_nodes(Level::kScalar, nullptr, nullptr);
    LLVMBuildBr(builder_, row);

    at(row);
    const Value r = LLVMBuildPhi(builder_, i64_, "");
    for (size_t i = 0; i < count; ++i) pointers_[i] = LLVMBuildPhi(builder_, pointer_, "");
    write_nodes(Level::kRow, nullptr, nullptr);
    const std::vector<Value> before = load_lanes(lanes);
    LLVMBuildCondBr(builder_, compare(LLVMIntSGT, covered, zero), whole, rest);

    at(whole);
    const Value i = LLVMBuildPhi(builder_, i64_, "");
    const std::vector<Value> carried = lanes_phi();
    for (uint64_t v = 0; v < vectors; ++v)
      write_vector(LLVMBuildAdd(builder_, i, number(v * vectors_.lanes()), ""), nullptr, v % lanes,
                   lanes);
    const std::vector<Value> folded = lanes_;
    const Value after = LLVMBuildAdd(builder_, i, number(step), "");
    const LLVMBasicBlockRef whole_end = LLVMGetInsertBlock(builder_);
    LLVMBuildCondBr(builder_, compare(LLVMIntSLT, after, covered), whole, rest);
    enter(i, {zero, after}, {row, whole_end});
    for (size_t k = 0; k < carried.size(); ++k)
      enter(carried[k], {before[k], folded[k]}, {row, whole_end});

    at(rest);
    const std::vector<Value> so_far = lanes_phi();
    for (size_t k = 0; k < so_far.size(); ++k)
      enter(so_far[k], {before[k], folded[k]}, {row, whole_end});
    LLVMBuildCondBr(builder_, compare(LLVMIntSGT, left, zero), tail, next);

    at(tail);
    for (uint64_t v = 0; v < vectors; ++v)
      write_vector(LLVMBuildAdd(builder_, covered, number(v * vectors_.lanes()), ""), masks[v],
                   v % lanes, lanes);
    const std::vector<Value> last = lanes_;
    const LLVMBasicBlockRef tail_end = LLVMGetInsertBlock(builder_);
    LLVMBuildBr(builder_, next);

    at(next);
    const std::vector<Value> total = lanes_phi();
    for (size_t k = 0; k < total.size(); ++k)
      enter(total[k], {so_far[k], last[k]}, {rest, tail_end});
    store_lanes(lanes);
    const Value r_after = LLVMBuildAdd(builder_, r, number(1), "");
    for (size_t k = 0; k < count; ++k)
      enter(pointers_[k],
            {first[k], element(pointers_[k], LLVMInt8TypeInContext(context_), strides[k])},
            {start, next});
    enter(r, {zero, r_after}, {start, next});
    LLVMBuildCondBr(builder_, compare(LLVMIntSLT, r_after, rows), row, done);

    at(done);
    LLVMBuildRetVoid(builder_);
  }

  const std::vector<std::string>& function_names() const { return vectors_.function_names(); }

 private:
  void declare() {
    LLVMTypeRef parameters[] = {pointer_, pointer_, i64_, i64_, pointer_};
    function_ = LLVMAddFunction(
        module_, kEntry,
        LLVMFunctionType(LLVMVoidTypeInContext(context_), parameters, std::size(parameters), 0));
    set_attribute("nounwind", 0);
    // Vectors that are spilled around calls must not straddle cache lines.
    set_attribute("alignstack", 64);
    vectors_.set_functions(LLVMGetParam(function_, 4));
  }

  void set_attribute(std::string_view name, uint64_t value) {
    const unsigned kind = LLVMGetEnumAttributeKindForName(name.data(), name.size());
    LLVMAddAttributeAtIndex(function_, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                            LLVMCreateEnumAttribute(context_, kind, value));
  }
  Value number(uint64_t value) { return LLVMConstInt(i64_, value, 0); }
  void at(LLVMBasicBlockRef block) { LLVMPositionBuilderAtEnd(builder_, block); }
  Value compare(LLVMIntPredicate p, Value a, Value b) {
    return LLVMBuildICmp(builder_, p, a, b, "");
  }
  Value element(Value base, LLVMTypeRef type, Value index) {
    return LLVMBuildGEP2(builder_, type, base, &index, 1, "");
  }
  Value load(LLVMTypeRef type, Value address) {
    return LLVMBuildLoad2(builder_, type, address, "");
  }
  void enter(Value phi, std::vector<Value> values, std::vector<LLVMBasicBlockRef> from) {
    LLVMAddIncoming(phi, values.data(), from.data(), static_cast<unsigned>(values.size()));
  }

  /// A mask of the lanes below `count`, where the first lane is `from`.
  Value mask_of(Value count, uint64_t from) {
    const LLVMTypeRef i32 = LLVMInt32TypeInContext(context_);
    std::vector<Value> lanes;
    for (unsigned i = 0; i < vectors_.lanes(); ++i) lanes.push_back(LLVMConstInt(i32, from + i, 0));
    const Value numbers = LLVMConstVector(lanes.data(), vectors_.lanes());
    return compare(LLVMIntULT, numbers, vectors_.splat(LLVMBuildTrunc(builder_, count, i32, "")));
  }

  Value align_of(Type memory) {
    return LLVMConstInt(LLVMInt32TypeInContext(context_), bytes_of(memory), 0);
  }
  unsigned bytes_of(Type memory) {
    return memory == Type::kBool ? 1 : static_cast<unsigned>(bits_of(memory)) / 8;
  }

  Value read(const Node& node, Value i, Value mask) {
    const LLVMTypeRef type = vectors_.stored(node.memory), vector = vectors_.vector(type);
    const Value pointer = pointers_[static_cast<size_t>(node.pointer)];
    Value v = nullptr;
    if (node.level != Level::kVector) {
      v = vectors_.splat(load(type, pointer));
    } else if (mask) {
      v = vectors_.intrinsic(
          "llvm.masked.load", {vector, pointer_},
          {element(pointer, type, i), align_of(node.memory), mask, LLVMConstNull(vector)});
    } else {
      v = load(vector, element(pointer, type, i));
      LLVMSetAlignment(v, bytes_of(node.memory));
    }
    return vectors_.convert(node.memory, node.type, vectors_.from_memory(node.memory, v));
  }

  void write_nodes(Level level, Value i, Value mask) {
    for (size_t k = 0; k < program_.nodes.size(); ++k) {
      const Node& node = program_.nodes[k];
      if (node.level != level) continue;
      const auto input = [&](size_t n) { return static_cast<size_t>(node.inputs[n]); };
      switch (node.kind) {
        case Node::Kind::kRead:
          values_[k] = read(node, i, mask);
          break;
        case Node::Kind::kConvert:
          values_[k] =
              vectors_.convert(program_.nodes[input(0)].type, node.type, values_[input(0)]);
          break;
        case Node::Kind::kApply: {
          std::vector<Value> x;
          for (size_t n = 0; n < node.inputs.size(); ++n) x.push_back(values_[input(n)]);
          if (x.empty()) throw std::runtime_error(node.loop + " of nothing");
          // The operand type is that of the last operand: the first one of a select is the
          // condition.
          values_[k] = vectors_.apply(node.loop, program_.nodes[input(x.size() - 1)].type,
                                      node.type, x, node.parameters);
          break;
        }
      }
    }
  }

  void write_stores(Value i, Value mask) {
    for (size_t k = 0; k < program_.stores.size(); ++k) {
      const Store& store = program_.stores[k];
      const size_t node = static_cast<size_t>(store.node);
      const Value v = vectors_.to_memory(
          store.memory, vectors_.convert(program_.nodes[node].type, store.memory, values_[node]));
      const Value address = element(pointers_[static_cast<size_t>(program_.reads) + k],
                                    vectors_.stored(store.memory), i);
      if (mask) {
        vectors_.intrinsic("llvm.masked.store", {LLVMTypeOf(v), pointer_},
                           {v, address, align_of(store.memory), mask});
      } else {
        LLVMSetAlignment(LLVMBuildStore(builder_, v, address), bytes_of(store.memory));
      }
    }
  }

  // --- folds ---

  static constexpr uint64_t kGroup = 4;

  /// Whether vectors are added to each other, or multiplied, before they enter the accumulators, as
  /// runs of floats are in kernels/reduce/reduce_simd.cc.
  bool in_groups(const Fold& fold) const {
    return fold.lanes && (fold.kind == Fold::Kind::kSum || fold.kind == Fold::Kind::kProd) &&
           program_.nodes[static_cast<size_t>(fold.node)].type == Type::kF32;
  }
  /// The accumulators with a group of vectors: with their sum or product, or with each one where
  /// floats do not hold that.
  Value fold_group(Fold::Kind kind, Value accumulators, const std::vector<Value>& group) {
    const auto add = [&](Value a, Value v) {
      return vectors_.fold(kind, a, Type::kF32, v, nullptr);
    };
    const LLVMBasicBlockRef fast = LLVMGetInsertBlock(builder_),
                            slow = LLVMAppendBasicBlockInContext(context_, function_, "slow"),
                            both = LLVMAppendBasicBlockInContext(context_, function_, "both");
    const Vectors::Group one = vectors_.fold_four(kind, group);
    const Value taken = add(accumulators, one.value);
    set_unlikely(LLVMBuildCondBr(builder_, one.escapes, slow, both));
    at(slow);
    Value each = accumulators;
    for (const Value v : vectors_.in_double(one, group)) each = add(each, v);
    LLVMBuildBr(builder_, both);
    at(both);
    const Value out = LLVMBuildPhi(builder_, doubles(), "");
    enter(out, {taken, each}, {fast, slow});
    return out;
  }
  void set_unlikely(Value branch) {
    const LLVMTypeRef i32 = LLVMInt32TypeInContext(context_);
    const std::string_view prof = "prof", name = "branch_weights";
    LLVMMetadataRef weights[] = {LLVMMDStringInContext2(context_, name.data(), name.size()),
                                 LLVMValueAsMetadata(LLVMConstInt(i32, 1, 0)),
                                 LLVMValueAsMetadata(LLVMConstInt(i32, 2000, 0))};
    LLVMSetMetadata(
        branch, LLVMGetMDKindIDInContext(context_, prof.data(), unsigned(prof.size())),
        LLVMMetadataAsValue(context_, LLVMMDNodeInContext2(context_, weights, std::size(weights))));
  }

  LLVMTypeRef doubles() { return vectors_.vector(vectors_.element(Type::kF64)); }
  Value fold_pointer(size_t k) {
    return pointers_[static_cast<size_t>(program_.reads) + program_.stores.size() + k];
  }
  Value load_doubles(Value address, Value mask) {
    if (mask)
      return vectors_.intrinsic("llvm.masked.load", {doubles(), pointer_},
                                {address, align_of(Type::kF64), mask, LLVMConstNull(doubles())});
    const Value v = load(doubles(), address);
    LLVMSetAlignment(v, bytes_of(Type::kF64));
    return v;
  }
  void store_doubles(Value v, Value address, Value mask) {
    if (mask)
      vectors_.intrinsic("llvm.masked.store", {doubles(), pointer_},
                         {v, address, align_of(Type::kF64), mask});
    else
      LLVMSetAlignment(LLVMBuildStore(builder_, v, address), bytes_of(Type::kF64));
  }
  /// Addresses of the accumulators of a row, by fold and vector.
  std::vector<Value> lane_addresses(uint64_t vectors) {
    std::vector<Value> addresses;
    for (size_t k = 0; k < program_.folds.size(); ++k)
      for (uint64_t v = 0; program_.folds[k].lanes && v < vectors; ++v)
        addresses.push_back(element(fold_pointer(k), doubles(), number(v)));
    return addresses;
  }
  std::vector<Value> load_lanes(uint64_t vectors) {
    lanes_.clear();
    for (const Value address : lane_addresses(vectors))
      lanes_.push_back(load_doubles(address, nullptr));
    return lanes_;
  }
  void store_lanes(uint64_t vectors) {
    const std::vector<Value> addresses = lane_addresses(vectors);
    for (size_t k = 0; k < addresses.size(); ++k) store_doubles(lanes_[k], addresses[k], nullptr);
  }
  std::vector<Value> lanes_phi() {
    for (Value& lane : lanes_) lane = LLVMBuildPhi(builder_, doubles(), "");
    return lanes_;
  }

  /// Emits the computation of the elements at i, which enter the v-th of `vectors` of accumulators.
  void write_vector(Value i, Value mask, uint64_t v, uint64_t vectors) {
    write_nodes(Level::kVector, i, mask);
    write_stores(i, mask);
    uint64_t lane = v;
    for (size_t k = 0; k < program_.folds.size(); ++k) {
      const Fold& fold = program_.folds[k];
      const Type type = program_.nodes[static_cast<size_t>(fold.node)].type;
      const Value x = values_[static_cast<size_t>(fold.node)];
      if (in_groups(fold)) {
        waiting_[k].push_back(mask ? vectors_.masked(fold.kind, x, mask) : x);
        const size_t first = lane - v;
        if (waiting_[k].size() == kGroup) {
          lanes_[first] = fold_group(fold.kind, lanes_[first], waiting_[k]);
          waiting_[k].clear();
        }
        lane += vectors;
      } else if (fold.lanes) {
        lanes_[lane] = vectors_.fold(fold.kind, lanes_[lane], type, x, mask);
        lane += vectors;
      } else {
        const Value address = element(fold_pointer(k), vectors_.element(Type::kF64), i);
        const Value a = load_doubles(address, mask);
        store_doubles(vectors_.fold(fold.kind, a, type, x, nullptr), address, mask);
      }
    }
  }

  LLVMContextRef context_;
  LLVMModuleRef module_;
  LLVMBuilderRef builder_;
  const Program& program_;
  Vectors vectors_;
  LLVMTypeRef i64_, pointer_;
  Value function_ = nullptr;
  std::vector<Value> values_, pointers_;
  std::vector<Value> lanes_;                 ///< current accumulators of folds in registers
  std::vector<std::vector<Value>> waiting_;  ///< per fold: vectors of a group that is not complete
};

LLVMTargetRef target() {
  static const LLVMTargetRef found = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMTargetRef result = nullptr;
    char* message = nullptr;
    if (LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &result, &message) != 0) {
      const std::string text = message ? message : "no target";
      LLVMDisposeMessage(message);
      throw std::runtime_error(text);
    }
    return result;
  }();
  return found;
}

/// Throws std::runtime_error with LLVM's message if a call of its C interface failed.
void check(int failed, char* message) {
  const std::string text = message ? message : "";
  if (message) LLVMDisposeMessage(message);
  if (failed) throw std::runtime_error(text);
}

void compile(const char* text, int vector_bytes, paddle_codegen_receive receive, void* context) {
  if (vector_bytes != 32 && vector_bytes != 64)
    throw std::runtime_error("vectors of " + std::to_string(vector_bytes) + " bytes");
  const Program program = parse_program(text);
  const Owned<LLVMContextRef, ContextDeleter> llvm(LLVMContextCreate());
  const Owned<LLVMModuleRef, ModuleDeleter> module(
      LLVMModuleCreateWithNameInContext("group", llvm.get()));
  const Owned<LLVMBuilderRef, BuilderDeleter> builder(LLVMCreateBuilderInContext(llvm.get()));
  const Owned<LLVMTargetMachineRef, MachineDeleter> machine(LLVMCreateTargetMachine(
      target(), "x86_64-unknown-linux-gnu", "x86-64", features(vector_bytes),
      LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall));
  LLVMSetTarget(module.get(), "x86_64-unknown-linux-gnu");
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.get());
  LLVMSetModuleDataLayout(module.get(), layout);
  LLVMDisposeTargetData(layout);

  FunctionWriter writer(llvm.get(), module.get(), builder.get(), program, vector_bytes);
  writer.write();
  char* message = nullptr;
  int failed = LLVMVerifyModule(module.get(), LLVMReturnStatusAction, &message);
  check(failed, message);
  message = nullptr;
  LLVMMemoryBufferRef made = nullptr;
  failed = LLVMTargetMachineEmitToMemoryBuffer(machine.get(), module.get(), LLVMObjectFile,
                                               &message, &made);
  const Owned<LLVMMemoryBufferRef, BufferDeleter> object(made);
  check(failed, message);
  const LinkedCode code = link_object(
      {reinterpret_cast<const unsigned char*>(LLVMGetBufferStart(made)), LLVMGetBufferSize(made)},
      kEntry);
  std::string names;
  for (const std::string& name : writer.function_names()) names += name + "\n";
  receive(context, code.bytes.data(), code.bytes.size(), code.entry, names.c_str());
}

}  // namespace
}  // namespace paddle::codegen

extern "C" __attribute__((visibility("default"))) int paddle_module_version() {
  return PADDLE_CODEGEN_VERSION;
}

extern "C" __attribute__((visibility("default"))) int paddle_codegen_compile(
    const char* program, int vector_bytes, paddle_codegen_receive receive, void* context,
    char* message, size_t message_size) {
  static std::mutex mutex;
  try {
    const std::lock_guard lock(mutex);
    paddle::codegen::compile(program, vector_bytes, receive, context);
    return 0;
  } catch (const std::exception& e) {
    if (message_size > 0) {
      std::strncpy(message, e.what(), message_size - 1);
      message[message_size - 1] = 0;
    }
    return 1;
  }
}
