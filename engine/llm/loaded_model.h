#pragma once
// A language model whose family has a function `step`: its weights, mapped from its files, and the
// traced function. Several runners (runner.h) share one.

#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"
#include "llm/adapter.h"
#include "llm/family.h"
#include "llm/sequence_memory.h"
#include "llm/weights.h"
#include "program/model.h"

namespace paddle::llm {

/// How keys and values are stored.
enum class CacheType : uint8_t { kF32, kBF16, kI8 };
/// From "f32", "bf16" or "int8"; kUsage for another word.
CacheType cache_type(const std::string& word);

/// Activations in products with weights that are blocks of integers. In float32 the weights are
/// dequantized when they are loaded.
enum class Activations : uint8_t { kInt8, kInt16, kFloat32 };
/// From "int8", "int16" or "float32"; kUsage for another word.
Activations activations(const std::string& word);

/// The caches of a traced function.
struct CacheLayout {
  int64_t slots = 0;  ///< tokens of all sequences
  CacheType type = CacheType::kF32;
  int64_t blocks = 0;   ///< of the table of a paged cache; 0: a plain one
  int64_t context = 0;  ///< tokens of a text at most
};

class LoadedModel {
 public:
  LoadedModel(const ModelFiles& files, Family family, const std::string& path,
              program::LoadOptions options, Activations activations, WeightType weights);

  const std::string& name() const { return name_; }
  int64_t context() const { return context_; }  ///< tokens that it was trained for
  const std::vector<int64_t>& end_tokens() const { return end_tokens_; }
  const program::LoadOptions& options() const { return options_; }
  const Family& family() const { return family_; }
  int64_t parameter_count() const { return parameter_count_; }
  /// The caches of the function `step`, the states of `trace`: what a sequence keeps. Empty before
  /// the first trace.
  std::span<const SequenceMemory> memories() const { return memories_; }

  /// The function `step` with these caches, and with an adapter unless that is null. Weights are
  /// constants that all traces share; the caches are its states. With a paged cache it has a
  /// further input `blocks`: starts are slots of the table, whose entries are blocks of the cache.
  std::shared_ptr<ir::Function> trace(const CacheLayout& cache, Adapter* adapter = nullptr);

 private:
  /// The state of packing one function.
  struct Packing {
    ir::Function& function;
    std::map<const ir::Value*, std::string> names;  ///< of parameters
    Adapter* adapter;
    std::map<std::string, ir::Value*> constants;
  };
  void pack(Packing& packing, ir::Region& region);
  ir::Value* constant_of(Packing& packing, const std::string& key, const Array& value);
  void add_adapter(Packing& packing, ir::Region& region,
                   std::list<std::unique_ptr<ir::Operation>>::iterator place,
                   const std::string& name, const Adapter::Factors& factors);
  void bind(ir::Function& function);
  std::vector<SequenceMemory> memories_of(const ir::Function& function) const;

  std::string name_, path_, config_;
  Family family_;
  program::LoadOptions options_;
  Weights weights_;
  Activations activations_;
  int64_t context_ = 0, parameter_count_ = 0;
  std::vector<int64_t> end_tokens_;
  std::vector<SequenceMemory> memories_;
  std::map<std::string, PackedWeight> packed_;  ///< by name and orientation
  std::map<std::string, Array> floats_;
};

}  // namespace paddle::llm
