// Operators of ai.onnx.ml on labels, categories and maps.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "onnx/ml/classifier.h"
#include "onnx/ops/helpers.h"

namespace paddle::onnx {
namespace {

/// Keys and values of LabelEncoder as strings of any dtype; -0 equals 0, and NaN equals NaN.
std::string key_text(double v) { return std::isnan(v) ? "nan" : format_double(v == 0 ? 0.0 : v); }

std::vector<std::string> texts_of(const Value& v) {
  if (v.kind() == Value::Kind::kStrings) return v.strings().items;
  const Array& a = v.tensor().array();
  std::vector<std::string> out;
  for (int64_t i = 0; i < a.size(); ++i)
    out.push_back(is_float(a.dtype) ? key_text(a.number(i)) : std::to_string(a.integer(i)));
  return out;
}

/// The vector in attribute keys_* or values_*.
Value list_attribute(const NodeCall& c, const std::string& what) {
  if (const auto* t = c.find(what + "_tensor"); t && !t->tensors.empty())
    return Value::of(t->tensors[0]);
  if (const auto* s = c.find(what + "_strings"))
    return Value::of_strings({static_cast<int64_t>(s->strings.size())}, s->strings);
  if (const auto* i = c.find(what + "_int64s"))
    return Tensor(Array::from(i->ints, {static_cast<int64_t>(i->ints.size())}));
  if (const auto* f = c.find(what + "_floats"))
    return Tensor(Array::from(f->floats, {static_cast<int64_t>(f->floats.size())}));
  c.reject("it has no ", what);
}

Values label_encoder(NodeCall& c) {
  const Value keys = list_attribute(c, "keys"), values = list_attribute(c, "values");
  const auto texts = texts_of(keys);
  const Dims length = concrete(values.shape());
  c.check(length.size() == 1 && length[0] == static_cast<int64_t>(texts.size()), "there are ",
          texts.size(), " keys for values of shape ", paddle::str(length));
  std::map<std::string, size_t> index_of;
  for (size_t i = 0; i < texts.size(); ++i) index_of.try_emplace(texts[i], i);
  Value x = c.value(0);
  if (x.is_tensor()) x = Value(Tensor(c.constant_array(0)));
  const auto wanted = texts_of(x);
  const Dims shape = concrete(x.shape());
  if (values.kind() == Value::Kind::kStrings) {
    std::string other = c.string_attr("default_string", "_Unused");
    if (const auto* t = c.find("default_tensor");
        t && !t->tensors.empty() && !t->tensors[0].strings.empty())
      other = t->tensors[0].strings[0];
    std::vector<std::string> out;
    for (const std::string& w : wanted) {
      const auto it = index_of.find(w);
      out.push_back(it == index_of.end() ? other : values.strings().items.at(it->second));
    }
    return {Value::of_strings(shape, out)};
  }
  const Array table = values.tensor().array().contiguous();
  Array other =
      Array::scalar(is_float(table.dtype) ? c.float_attr("default_float", 0)
                                          : static_cast<double>(c.int_attr("default_int64", -1)))
          .cast(table.dtype);
  if (const auto* t = c.find("default_tensor"); t && !t->tensors.empty())
    other = t->tensors[0].array.cast(table.dtype);
  Array out = Array::empty(table.dtype, shape);
  const auto item = static_cast<size_t>(item_size(table.dtype));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto it = index_of.find(wanted[i]);
    const bool found = it != index_of.end() && static_cast<int64_t>(it->second) < table.size();
    const auto* from = static_cast<const std::byte*>(found ? table.raw() : other.raw());
    std::memcpy(out.storage->data() + i * item, from + (found ? it->second * item : 0), item);
  }
  return {Tensor(out)};
}

/// Maps strings to category numbers, or back.
Values category_mapper(NodeCall& c) {
  const auto words = c.strings_attr("cats_strings");
  const auto numbers = c.ints_attr("cats_int64s");
  c.check(words.size() == numbers.size(), "there are ", words.size(), " strings and ",
          numbers.size(), " numbers");
  const Dims shape = concrete(c.value(0).shape());
  if (c.value(0).kind() == Value::Kind::kStrings) {
    std::map<std::string, int64_t> index_of;
    for (size_t i = 0; i < words.size(); ++i) index_of[words[i]] = numbers[i];
    const int64_t other = c.int_attr("default_int64", -1);
    std::vector<int64_t> out;
    for (const std::string& w : c.value(0).strings().items) {
      const auto found = index_of.find(w);
      out.push_back(found == index_of.end() ? other : found->second);
    }
    return {Tensor(Array::from(out, shape))};
  }
  std::map<int64_t, std::string> index_of;
  for (size_t i = 0; i < numbers.size(); ++i) index_of[numbers[i]] = words[i];
  const std::string other = c.string_attr("default_string", "_Unused");
  const Array x = c.constant_array(0);
  c.check(is_integer(x.dtype), "the input is ", paddle::text(x.dtype));
  std::vector<std::string> out;
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto found = index_of.find(x.integer(i));
    out.push_back(found == index_of.end() ? other : found->second);
  }
  return {Value::of_strings(shape, std::move(out))};
}

/// Score rows as maps from label to score.
Values zip_map(NodeCall& c) {
  const Labels labels = Labels::of(c, "classlabels_strings", "classlabels_int64s");
  const Array x = feature_rows(c, 0);
  c.check(x.shape[1] == static_cast<int64_t>(labels.size()), "there are ", labels.size(),
          " labels for ", x.shape[1], " columns");
  const Value keys = labels.all();
  Value::List maps;
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    Array row = x;
    row.shape = {x.shape[1]};
    row.strides = {1};
    row.offset += r * x.shape[1];
    maps.push_back(Value::map(keys, Value(Tensor(row))));
  }
  return {Value::sequence(std::move(maps))};
}

/// Map values in the order of a vocabulary; 0 or "" for missing keys.
Values dict_vectorizer(NodeCall& c) {
  const Labels vocabulary = Labels::of(c, "string_vocabulary", "int64_vocabulary");
  const Value &keys = c.value(0).keys(), &values = c.value(0).map_values();
  std::map<std::string, size_t> index_of;
  const auto given = texts_of(keys);
  for (size_t i = 0; i < given.size(); ++i) index_of[given[i]] = i;
  const auto wanted = texts_of(vocabulary.all());
  const Dims shape = {1, static_cast<int64_t>(wanted.size())};
  if (values.kind() == Value::Kind::kStrings) {
    std::vector<std::string> out;
    for (const std::string& w : wanted) {
      const auto found = index_of.find(w);
      out.push_back(found == index_of.end() ? "" : values.strings().items.at(found->second));
    }
    return {Value::of_strings(shape, std::move(out))};
  }
  const Array from = values.tensor().array().contiguous();
  Array out = Array::zeros(from.dtype, shape);
  const auto item = static_cast<size_t>(item_size(from.dtype));
  for (size_t i = 0; i < wanted.size(); ++i)
    if (const auto found = index_of.find(wanted[i]);
        found != index_of.end() && static_cast<int64_t>(found->second) < from.size())
      std::memcpy(out.storage->data() + i * item,
                  static_cast<const std::byte*>(from.raw()) + found->second * item, item);
  return {Tensor(out)};
}

/// Map values by ascending key, or (SPARSE) at the index given by the key.
Values cast_map(NodeCall& c) {
  const Value &keys = c.value(0).keys(), &values = c.value(0).map_values();
  c.check(keys.is_tensor(), "keys must be integers");
  const std::string form = c.string_attr("map_form", "DENSE"),
                    to = c.string_attr("cast_to", "TO_FLOAT");
  c.check(form == "DENSE" || form == "SPARSE", "unknown map_form '", form, "'");
  c.check(to == "TO_FLOAT" || to == "TO_INT64" || to == "TO_STRING", "unknown cast_to '", to, "'");
  const bool sparse = form == "SPARSE";
  const int64_t most = c.int_attr("max_map", 1);
  c.check(!sparse || (most > 0 && most < 1 << 24), "max_map is ", most);
  std::map<int64_t, std::string> items;
  const auto texts = texts_of(values);
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t key = keys.tensor().array().integer(static_cast<int64_t>(i));
    c.check(key >= 0, "a key is ", key);
    items[key] = texts[i];
  }
  std::vector<std::string> row(sparse ? static_cast<size_t>(most) : 0,
                               to == "TO_STRING" ? "0.f" : "0");
  for (const auto& [key, text] : items) {
    if (!sparse)
      row.push_back(text);
    else if (key < most)
      row[static_cast<size_t>(key)] = text;
  }
  const Dims shape = {1, static_cast<int64_t>(row.size())};
  if (to == "TO_STRING") return {Value::of_strings(shape, std::move(row))};
  Array out = Array::empty(to == "TO_FLOAT" ? DType::kF32 : DType::kI64, shape);
  for (size_t i = 0; i < row.size(); ++i) {
    double number = 0;
    size_t used = 0;
    try {
      number = std::stod(row[i], &used);
    } catch (const std::exception&) {
      used = 0;
    }
    c.check(used == row[i].size() && used > 0, "'", row[i], "' is not a number");
    if (to == "TO_FLOAT")
      out.data<float>()[i] = static_cast<float>(number);
    else
      out.data<int64_t>()[i] = std::abs(number) < 0x1p63 ? static_cast<int64_t>(number) : INT64_MIN;
  }
  return {Tensor(out)};
}

}  // namespace

OperatorTable ml_labels_operators() {
  static constexpr Operator operators[] = {
      {"CastMap", 1, cast_map},
      {"CategoryMapper", 1, category_mapper},
      {"DictVectorizer", 1, dict_vectorizer},
      {"LabelEncoder", 1, label_encoder},
      {"ZipMap", 1, zip_map},
  };
  return operators;
}

}  // namespace paddle::onnx
