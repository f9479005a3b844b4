#pragma once
// One call of a layer while its parameters are made, for the files of this folder.

#include <map>
#include <string>
#include <vector>

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// The parameters of a layer in the order of its signature.
struct LayerForm {
  struct Item {
    std::string name;
    bool has_fallback;
    Value fallback;
  };
  std::vector<Item> items;

  bool has(std::string_view name) const {
    for (const Item& item : items) {
      if (item.name == name) return true;
    }
    return false;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Item& item : items) out.push_back(item.name);
    return out;
  }
};

/// The layer form that an operation declares, or null.
const LayerForm* layer_form(const Op& op);

class LayerCall {
 public:
  Evaluation& evaluation;
  const Op& op;
  const Site& site;
  Frame& frame;
  const LayerForm& form;
  std::map<std::string, Value> values;           ///< by parameter: given, default, or made
  std::map<std::string, SourcePosition> places;  ///< of the named arguments
  Arguments naming;                              ///< `name` and `share`
  std::string path_;
  bool weight_given = false;

  /// A value that is given and not none, or null.
  const Value* find(const std::string& key) const;
  Tensor tensor(const std::string& key);
  Tensor x() { return tensor("x"); }
  /// A size of at least 1; dims are rejected by name.
  int64_t size(const std::string& key) const;
  int64_t known(const Dim& dim, std::string_view what) const;
  /// One size for each axis of a window.
  Dims window(const std::string& key, size_t axes) const;
  /// The sizes of a list, or one size.
  Dims sizes(const std::string& key) const;
  const std::string& path();
  /// Whether a flag such as `bias` asks for a parameter (false if it is given as a tensor).
  bool wants(const std::string& key, bool by_default) const;
  /// Makes a parameter of that name; `init_key` is the argument that may set its initializer.
  void make(const std::string& key, const Dims& shape, const Initializer& fallback,
            const std::string& init_key);
  /// Makes a state of the model and gives its path.
  std::string make_state(const std::string& key, const Dims& shape, double start);
  /// kConfig unless all arguments without a default are there.
  void check_required() const;
  /// Calls the operation with what `values` holds of its parameters.
  Value run(Tensors* all = nullptr);
};

/// Makes the parameters of a layer, calls its operation and returns the results.
Value call_with_weights(LayerCall& call);

}  // namespace paddle::lang
