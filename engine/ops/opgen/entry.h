#pragma once
// One operation as the schema declares it, after parsing its signature.

#include <string>
#include <utility>
#include <vector>

namespace opgen {

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
  std::string name, file, family, signature, doc, layer, precision;
  std::vector<Param> params;
  std::vector<Result> results;
  std::vector<Weight> weights;
  std::string infer, cost, vjp, no_gradient, decompose, decompose_for_fusion, view, write, kernel,
      in_place;
  std::vector<std::string> traits, aliases, samples, overloads, images;
  bool has_samples = false;
  int version = 1;
  std::string identifier() const;   ///< name as a C++ identifier
  std::string struct_name() const;  ///< "LogSoftmaxAttrs"
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

Parameters read_parameters(const std::string& file);
/// Adds the entries of a file to the family named like its folder.
void read_schema(const std::string& file, std::vector<Family>& families);
/// Throws if an entry is incomplete or names what does not exist.
void check(const std::vector<Family>& families);

}  // namespace opgen
