#include "train/session/field_types.h"

#include <algorithm>
#include <map>

#include "lang/syntax/program.h"

namespace paddle::train {

std::vector<FieldType> field_types(const std::vector<program::NamedModel>& models,
                                   const std::vector<FieldType>& samples, bool use_float64) {
  std::vector<FieldType> out = samples;
  const auto is_field = [&](const std::string& name) {
    return std::any_of(samples.begin(), samples.end(),
                       [&](const FieldType& f) { return f.name == name; });
  };
  std::vector<std::pair<std::string, TensorType>> inputs;
  for (const program::NamedModel& model : models)
    for (auto& input : lang::input_types(*model.program, model.program->model))
      // A step calls models by name with values that it computed.
      if (model.name.empty() || is_field(input.first)) inputs.push_back(std::move(input));
  Dim batch = Dim::symbol("batch");
  std::map<int64_t, Dim> symbol_of_size;
  std::map<std::string, Dim> declared_symbols;  // by the names of the samples' sizes
  for (const auto& [name, type] : inputs)
    if (!type.shape.empty()) {
      batch = type.shape[0];
      break;
    }
  for (const auto& [name, type] : inputs) {
    const auto it = std::find_if(out.begin(), out.end(), [&, &wanted = name](const FieldType& f) {
      return f.name == wanted;
    });
    if (it == out.end()) {
      std::vector<std::string> names;
      for (const FieldType& f : samples) names.push_back(f.name);
      fail(ErrorCode::kConfig, "the model's input '", name,
           "' is not a field of the data, which has ", join(names, ", "),
           did_you_mean(name, names));
    }
    const Shape& sample = it->type.shape;
    if (type.shape.size() != sample.size() + 1)
      fail(ErrorCode::kConfig, "the model's input '", name, "' is ", type,
           ", a batch of the data's field ", text(it->type.dtype), "[batch, …] has ",
           sample.size() + 1, " dimensions");
    for (size_t d = 0; d < sample.size(); ++d) {
      const Dim& declared = type.shape[d + 1];
      if (sample[d].is_symbol() && !declared.is_unknown())
        declared_symbols.emplace(sample[d].text(), declared);
      if (!sample[d].is_constant()) continue;
      if (declared.is_symbol()) symbol_of_size.emplace(sample[d].value(), declared);
      if (declared.is_constant() && declared.value() != sample[d].value())
        fail(ErrorCode::kConfig, "the model's input '", name, "' is ", type,
             ", a sample of the data's field is ", text(it->type.dtype), text(sample));
    }
    if (type.dtype != it->type.dtype)
      fail(ErrorCode::kConfig, "the model's input '", name, "' is ", text(type.dtype),
           ", the data's field is ", text(it->type.dtype),
           "; add a transform such as 'cast' or 'scale' to the data");
  }
  for (FieldType& field : out) {
    const auto it = std::find_if(inputs.begin(), inputs.end(),
                                 [&](const auto& i) { return i.first == field.name; });
    if (it != inputs.end()) {
      field.type = it->second;
    } else {
      for (Dim& d : field.type.shape)
        if (d.is_constant()) {
          const auto symbol = symbol_of_size.find(d.value());
          if (symbol != symbol_of_size.end()) d = symbol->second;
        } else if (d.is_symbol()) {
          const auto symbol = declared_symbols.find(d.text());
          if (symbol != declared_symbols.end()) d = symbol->second;
        }
      field.type.shape.insert(field.type.shape.begin(), batch);
    }
    if (use_float64 && field.type.dtype == DType::kF32) field.type.dtype = DType::kF64;
  }
  return out;
}

}  // namespace paddle::train
