// Language models and text encoders.

#include "paddle/language_model.h"

#include "python/core.h"

namespace paddle::python {
namespace {

using Generator = Holder<v0::LanguageModel>;
using Encoder = Holder<v0::TextEncoder>;

PyObject* open_generator(PyTypeObject* type, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"path",    "context", "kv_cache", "activations",
                                 "weights", "adapter", "family",   nullptr};
    PyObject* path = nullptr;
    long long context = 0;
    const char *kv_cache = "f32", *activations = "int16", *weights = "as-is";
    const char *adapter = "", *family = "";
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|Lsssss:LanguageModel",
                                     const_cast<char**>(keys), &path, &context, &kv_cache,
                                     &activations, &weights, &adapter, &family))
      throw PythonError();
    v0::LanguageModelOptions options;
    options.context = context;
    options.kv_cache = kv_cache;
    options.activations = activations;
    options.weights = weights;
    options.adapter = adapter;
    options.family = family;
    const std::string file = path_of(path);
    std::optional<v0::LanguageModel> model;
    require_threads();
    {
      const WithoutLock others;
      model.emplace(file, options);
    }
    return Generator::make(type, std::move(*model)).release();
  });
}

std::vector<int64_t> tokens_of(PyObject* sequence) {
  const Ref items = checked(PySequence_Tuple(sequence));
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    const Ref index = checked(PyNumber_Index(PyTuple_GetItem(items.get(), i)));
    const long long token = PyLong_AsLongLong(index.get());
    if (token == -1 && PyErr_Occurred()) throw PythonError();
    out.push_back(token);
  }
  return out;
}

/// Hands pieces of text to a function, which ends the generation by returning False. Ctrl-C ends it
/// with KeyboardInterrupt, on the main thread.
bool hand_over(PyObject* function, const std::string& piece) {
  const WithLock lock;
  checked(PyErr_CheckSignals());
  if (function == Py_None) return true;
  const Ref text = python_text(piece);
  const Ref answer = checked(PyObject_CallFunctionObjArgs(function, text.get(), nullptr));
  return answer.get() != Py_False;
}

PyObject* generate(PyObject* self, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"prompt",
                                 "is_chat",
                                 "on_text",
                                 "max_tokens",
                                 "temperature",
                                 "top_k",
                                 "top_p",
                                 "min_p",
                                 "repetition_penalty",
                                 "presence_penalty",
                                 "frequency_penalty",
                                 "seed",
                                 "stops",
                                 "json_schema",
                                 "regex",
                                 nullptr};
    PyObject *prompt = nullptr, *on_text = nullptr, *stops = nullptr;
    int is_chat = 0;
    long long length = 0, top_k = 0;
    unsigned long long seed = 0;
    const char *schema = "", *regex = "";
    v0::GenerateOptions options;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "OpOLdLdddddKOss:generate",
                                     const_cast<char**>(keys), &prompt, &is_chat, &on_text, &length,
                                     &options.temperature, &top_k, &options.top_p, &options.min_p,
                                     &options.repetition_penalty, &options.presence_penalty,
                                     &options.frequency_penalty, &seed, &stops, &schema, &regex))
      throw PythonError();
    options.length = length;
    options.top_k = top_k;
    options.seed = seed;
    options.stops = texts_of(stops);
    options.json_schema = schema;
    options.regex = regex;
    options.on_text = [&](const std::string& piece) { return hand_over(on_text, piece); };
    const bool is_text = PyUnicode_Check(prompt) != 0;
    const std::string text = is_text ? text_of(prompt) : "";
    const std::vector<int64_t> tokens = is_text ? std::vector<int64_t>() : tokens_of(prompt);
    v0::LanguageModel& model = Generator::of(self);
    v0::GeneratedText out;
    {
      const WithoutLock others;
      out = is_chat   ? model.chat(text, options)
            : is_text ? model.generate(text, options)
                      : model.generate(tokens, options);
    }
    return checked(Py_BuildValue("(sLL)", out.text.c_str(),
                                 static_cast<long long>(out.prompt_tokens),
                                 static_cast<long long>(out.generated_tokens)))
        .release();
  });
}

PyObject* encode(PyObject* self, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* text = nullptr;
    int special = 1;
    if (!PyArg_ParseTuple(arguments, "Op:encode", &text, &special)) throw PythonError();
    return python_ints(Generator::of(self).encode(text_of(text), special != 0)).release();
  });
}

PyObject* decode(PyObject* self, PyObject* tokens) {
  return guarded<PyObject*>(nullptr, [&] {
    return python_text(Generator::of(self).decode(tokens_of(tokens))).release();
  });
}

PyObject* chat_prompt(PyObject* self, PyObject* conversation) {
  return guarded<PyObject*>(nullptr, [&] {
    return python_text(Generator::of(self).chat_prompt(text_of(conversation))).release();
  });
}

template <class Value>
PyObject* number_of(PyObject* self, Value value) {
  return guarded<PyObject*>(
      nullptr, [&] { return checked(PyLong_FromLongLong(value(Generator::of(self)))).release(); });
}
PyObject* get_name(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr,
                            [&] { return python_text(Generator::of(self).name()).release(); });
}
PyObject* get_context(PyObject* self, void*) {
  return number_of(self, [](const v0::LanguageModel& model) { return model.context(); });
}
PyObject* get_parameter_count(PyObject* self, void*) {
  return number_of(self, [](const v0::LanguageModel& model) { return model.parameter_count(); });
}
PyObject* get_vocabulary_size(PyObject* self, void*) {
  return number_of(self, [](const v0::LanguageModel& model) { return model.vocabulary_size(); });
}
PyObject* get_has_chat_template(PyObject* self, void*) {
  return PyBool_FromLong(Generator::of(self).has_chat_template());
}

PyObject* open_encoder(PyTypeObject* type, PyObject* arguments, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    static const char* keys[] = {"path", nullptr};
    PyObject* path = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "O:TextEncoder", const_cast<char**>(keys),
                                     &path))
      throw PythonError();
    const std::string file = path_of(path);
    std::optional<v0::TextEncoder> encoder;
    {
      const WithoutLock others;
      encoder.emplace(file);
    }
    return Encoder::make(type, std::move(*encoder)).release();
  });
}

PyObject* embed(PyObject* self, PyObject* text) {
  return guarded<PyObject*>(nullptr, [&] {
    const std::string given = text_of(text);
    std::vector<float> vector;
    {
      const WithoutLock others;
      vector = Encoder::of(self).embed(given);
    }
    const auto width = static_cast<int64_t>(vector.size());
    return python_tensor(Tensor(Array::from<float>(vector, {width}))).release();
  });
}
PyObject* get_width(PyObject* self, void*) {
  return guarded<PyObject*>(
      nullptr, [&] { return checked(PyLong_FromLongLong(Encoder::of(self).width())).release(); });
}
PyObject* get_encoder_context(PyObject* self, void*) {
  return guarded<PyObject*>(
      nullptr, [&] { return checked(PyLong_FromLongLong(Encoder::of(self).context())).release(); });
}

PyMethodDef generator_methods[] = {
    {"_generate", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(generate)),
     METH_VARARGS | METH_KEYWORDS, "Text, tokens of the prompt and generated tokens."},
    {"_encode", encode, METH_VARARGS, "Token ids of a text."},
    {"_chat_prompt", chat_prompt, METH_O, "A conversation, as JSON, by the chat template."},
    {"decode", decode, METH_O, "The text of token ids, without special tokens."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef generator_attributes[] = {
    {"name", get_name, nullptr, "The name of the model.", nullptr},
    {"context", get_context, nullptr, "Tokens of prompt and answer.", nullptr},
    {"parameter_count", get_parameter_count, nullptr, "Number of weights.", nullptr},
    {"vocabulary_size", get_vocabulary_size, nullptr, "Number of tokens.", nullptr},
    {"has_chat_template", get_has_chat_template, nullptr, "Whether `chat` works.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot generator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(open_generator)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Generator::destroy)},
    {Py_tp_methods, generator_methods},
    {Py_tp_getset, generator_attributes},
    {Py_tp_doc, const_cast<char*>("A GGUF file or a Hugging Face folder.")},
    {0, nullptr}};
PyType_Spec generator_spec = {"paddle_toolchain._paddle.LanguageModel", sizeof(Generator), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, generator_slots};

PyMethodDef encoder_methods[] = {{"embed", embed, METH_O, "The vector of a text."},
                                 {nullptr, nullptr, 0, nullptr}};
PyGetSetDef encoder_attributes[] = {
    {"width", get_width, nullptr, "Numbers of a vector.", nullptr},
    {"context", get_encoder_context, nullptr, "Tokens of a text.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot encoder_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(open_encoder)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Encoder::destroy)},
    {Py_tp_methods, encoder_methods},
    {Py_tp_getset, encoder_attributes},
    {Py_tp_doc, const_cast<char*>("A text encoder such as BERT: a Hugging Face folder or a GGUF "
                                  "file.")},
    {0, nullptr}};
PyType_Spec encoder_spec = {"paddle_toolchain.TextEncoder", sizeof(Encoder), 0, Py_TPFLAGS_DEFAULT,
                            encoder_slots};

}  // namespace

void add_language_models(PyObject* module) {
  add_type(module, generator_spec, "LanguageModel");
  add_type(module, encoder_spec, "TextEncoder");
}

}  // namespace paddle::python
