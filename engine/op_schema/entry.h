#pragma once
// One operation as a schema declares it, after parsing its signature. The schema of the engine is
// read by opgen when it is built; plug-ins bring entries of the same form, whose rules are text.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paddle::op_schema {

struct Param {
  std::string name;
  bool is_operand = false;
  // operands
  bool list = false, promotes = false, host = false, shape_only = false, widened = false;
  /// The kinds and dtypes that the entry declares ("integer", "float32"); none: real ones.
  std::vector<std::string> dtypes;
  // attributes
  std::string type;           ///< "int", "ints", "word", …
  std::string words;          ///< for "word"
  std::string default_value;  ///< as written; "" if required
  bool or_tensor = false;
  // both
  bool optional = false, hidden = false;
  bool has_default() const { return optional || !default_value.empty(); }
};

struct Result {
  std::string name;
  bool variadic = false, optional = false, hidden = false;
};

/// A parameter or state of a layer: `xavier_uniform [features, out_features]`.
struct Weight {
  std::string name, init, sizes;
  std::string state;  ///< the result that updates a state, "" for a parameter
};

struct Entry {
  std::string name, family, signature, doc, layer, precision;
  SourceLocation place;
  std::vector<Param> params;
  std::vector<Result> results;
  std::vector<Weight> weights;
  // The names of compiled rules; only `no_gradient` also has a value in entries of plug-ins.
  std::string infer, cost, vjp, no_gradient, decompose, decompose_for_fusion, view, write, kernel,
      in_place;
  // Rules of plug-ins, in the model language.
  std::string body;
  std::vector<std::string> gradients;  ///< one per operand, or none: those of the body
  std::vector<std::string> types;      ///< one per result, or none: those of the body
  bool surrogate_gradient = false;     ///< `gradients` are not those of the function
  std::vector<std::string> traits;     ///< as the schema names them
  std::vector<std::string> aliases, samples, overloads, images;
  bool has_samples = false;
  bool takes_complex = false;  ///< from `dtypes`
  int version = 1;
  std::string identifier() const;   ///< name as a C++ identifier
  std::string struct_name() const;  ///< "LogSoftmaxAttrs"
  bool has_trait(std::string_view name) const;
};

/// The operations of one folder.
struct Family {
  std::string name;
  std::vector<Entry> entries;
};

/// Names that calls may use besides the declared ones (ops/core/parameters.yaml).
struct Parameters {
  std::vector<std::pair<std::string, std::string>> synonyms;  ///< the name used, the name declared
  std::vector<std::string> ignored;
};

/// All errors are kConfig with the file and, where there is one, the line.
Parameters read_parameters(const std::string& file);
/// Adds the entries of a file to the family named like its folder.
void read_schema(const std::string& file, std::vector<Family>& families);
/// Checks that entries are complete and name only what exists.
void check(const std::vector<Family>& families);

/// The entries of a plug-in, which `text` holds at its key `section`, or as a whole if that is
/// empty. Names are without the plug-in's.
std::vector<Entry> read_plugin_entries(const std::string& text, const std::string& file,
                                       const std::string& section);

/// The names of traits with those of their enumerators (ops/core/op.h).
const std::vector<std::pair<std::string, std::string>>& trait_names();

}  // namespace paddle::op_schema
