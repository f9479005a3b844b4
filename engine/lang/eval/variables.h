#pragma once
// The parameters and states that an evaluation meets, and the paths of layers that name them. Not
// for use outside the room.

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lang/eval/frame.h"
#include "lang/eval/operations.h"
#include "lang/eval/trace_context.h"

namespace paddle::lang {

class Variables {
 public:
  struct StateSlot {
    Tensor current;
    StateScope scope;
    Initializer init;
    DType declared;
    int64_t writes = 0;
  };
  using States = std::map<std::string, StateSlot>;  ///< by path

  Variables(TraceContext& context, Operations& operations)
      : context_(context), operations_(operations) {}

  /// The path of a layer or block; `name` and `share` are taken out of the arguments.
  std::string layer_path(const std::string& callee, Arguments& arguments, const Site& site,
                         Frame& frame);
  Tensor parameter(const std::string& path, const Dims& shape, DType dtype, const Initializer& init,
                   const SourcePosition& where);
  Value state(const std::string& path, const Dims& shape, DType dtype, const Initializer& init,
              StateScope scope, const SourcePosition& where);
  void update_state(const std::string& path, const Tensor& value, const SourcePosition& where);

  /// The functions of these names.
  Value call_param(Arguments& arguments, const SourcePosition& where, Frame& frame);
  Value call_state(Arguments& arguments, const SourcePosition& where, Frame& frame);
  Value call_update(Arguments& arguments, const SourcePosition& where);
  Value call_get(Arguments& arguments, const SourcePosition& where);

  States& states() { return states_; }
  /// Tells the store of states that control flow changed, once outside of it.
  void publish(const std::set<std::string>& paths);
  /// Makes states for real that a run on types met first.
  void open_states(const std::set<std::string>& paths, const States& met,
                   const SourcePosition& where);

  using Used = std::vector<std::pair<std::string, TensorType>>;
  /// Parameters since the last `forget_used`.
  const Used& used() const { return used_; }
  void forget_used() { used_.clear(); }

  /// Forgets at its end what a run on types made, and takes states back.
  class Rollback {
   public:
    explicit Rollback(Variables& variables);
    ~Rollback();
    Rollback(const Rollback&) = delete;
    Rollback& operator=(const Rollback&) = delete;

   private:
    Variables& variables_;
    States states_;
    size_t parameters_, claims_, used_;
  };

 private:
  struct Claim {
    const void* site;
    std::string callee;
    bool shared;
    SourcePosition where;
  };
  int occurrence(const std::string& callee, const Site& site, const Frame& frame);
  void claim(const std::string& path, const std::string& callee, bool shared, const Site& site);

  TraceContext& context_;
  Operations& operations_;
  /// The callees that each call had, for calls whose name by itself does not identify one.
  std::map<const Code*, std::vector<std::set<std::string>>> called_;
  std::unordered_map<std::string, Claim> claims_;
  std::unordered_map<std::string, Tensor> parameters_;
  States states_;
  /// Made during runs on types only, to be forgotten afterwards.
  std::vector<std::string> abstract_parameters_, abstract_claims_;
  Used used_;
};

}  // namespace paddle::lang
