#pragma once
// One operation as the schema declares it, after parsing its signature.

#include <string>
#include <vector>

namespace opgen {

struct Param {
  std::string name;
  bool is_operand = false;
  // operands
  bool list = false, promotes = false, host = false, shape_only = false, widened = false;
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

struct Entry {
  std::string name, file, family, signature, doc, layer, precision;
  std::vector<Param> params;
  std::vector<Result> results;
  std::string infer, cost, vjp, no_gradient, decompose, decompose_for_fusion, view, write, kernel,
      onednn, in_place;
  std::vector<std::string> traits, aliases, samples, overloads, images;
  bool has_samples = false;
  int version = 1;
  std::string identifier() const;   ///< name as a C++ identifier
  std::string struct_name() const;  ///< "LogSoftmaxAttrs"
};

void read_schema(const std::string& file, std::vector<Entry>& entries);
/// Throws if an entry is incomplete: no inference, neither kernel nor decomposition, no word on
/// its gradient.
void check(const std::vector<Entry>& entries);

}  // namespace opgen
