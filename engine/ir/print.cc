// The text form of modules.

#include "base/hex.h"
#include "ir/constants.h"

namespace paddle::ir {
namespace {

std::string reference(const Value* value) { return value ? "%" + std::to_string(value->id) : "_"; }

std::string quoted(const std::string& name) { return AttrValue(name).text(); }

/// A value where it is defined: "%3 'name'".
std::string defined(const Value& value) {
  return reference(&value) + (value.name.empty() ? "" : " " + quoted(value.name));
}

std::string placed(const TensorType& type, const Placement& placement) {
  return type.text() + (placement.empty() ? "" : " " + text(placement));
}
std::string placed(const Value& value) { return placed(value.type, value.placement); }

std::string port_text(const Port& port) {
  switch (port.kind) {
    case PortKind::kValue:
      return quoted(port.name);
    case PortKind::kParameter:
      return "parameter " + quoted(port.name);
    case PortKind::kState:
      return "state " + quoted(port.name);
    case PortKind::kRandom:
      return "random " + quoted(port.name);
  }
  return {};
}

/// The memory of an array of a storage type, whose elements may have fewer than 8 bits.
std::string hexadecimal(const Array& a) {
  return hex_digits({static_cast<const std::byte*>(a.raw()),
                     static_cast<size_t>(storage_bytes(a.dtype, a.size()))});
}

class Printer {
 public:
  /// Constants of more than `longest` elements are kept in the store, or elided without one.
  explicit Printer(int64_t longest = std::numeric_limits<int64_t>::max(),
                   ConstantStore* store = nullptr)
      : longest_(longest), store_(store) {}

  void module(const Module& m) {
    std::map<std::string, const Provider*> used;
    for (const auto& f : m.functions) add_providers(*f, used);
    providers(used);
    open(m.name);
    for (const Slot& s : m.parameters) slot("parameter", s);
    for (const Slot& s : m.states) slot("state", s);
    for (const auto& f : m.functions) function(*f);
    out_ += "}\n";
  }

  void module_around(const Function& f, const std::string& name) {
    std::map<std::string, const Provider*> used;
    add_providers(f, used);
    providers(used);
    open(name);
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const Slot s{.name = f.inputs[i].name, .type = f.body.arguments[i]->type, .initializer = ""};
      if (f.inputs[i].kind == PortKind::kParameter) slot("parameter", s);
      if (f.inputs[i].kind == PortKind::kState) slot("state", s);
    }
    function(f);
    out_ += "}\n";
  }

  void function(const Function& f) {
    out_ += "  func " + quoted(f.name) + "(";
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      if (i) out_ += ", ";
      const Value* v = f.body.arguments[i];
      out_ += "\n      " + defined(*v) + " : " + placed(*v) + " " + port_text(f.inputs[i]);
    }
    const std::string target = text(f.target);
    out_ += target.empty() ? ") {\n" : ") " + target + " {\n";
    for (const Value& v : f.values())
      if (v.constant) constant(v);
    for (const DimConstraint& c : f.constraints)
      out_ += str("    require ", c.left, " == ", c.right, " ", quoted(c.what), "\n");
    operations(f.body, 4);
    out_ += "    return ";
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      if (i) out_ += ", ";
      out_ += reference(f.body.results[i]) + " " + port_text(f.outputs[i]);
    }
    out_ += "\n  }\n";
  }

  std::string take() { return std::move(out_); }

 private:
  static void add_providers(const Function& f, std::map<std::string, const Provider*>& used) {
    for_each_operation(f.body, [&](const Operation& o) {
      if (const Provider* const provider = o.op->def->provider) used[provider->name] = provider;
    });
  }
  /// The plug-ins that a reader of the text needs.
  void providers(const std::map<std::string, const Provider*>& used) {
    for (const auto& [name, provider] : used)
      out_ += str("plugin ", name, " ", provider->version, "\n");
  }

  void open(const std::string& name) { out_ += "module " + quoted(name) + " {\n"; }

  void slot(const char* kind, const Slot& s) {
    out_ += str("  ", kind, " ", quoted(s.name), " : ", placed(s.type, s.placement), " = ",
                quoted(s.initializer), s.trainable ? "" : " frozen");
    if (s.scope != SlotScope::kModel) out_ += " " + text(s.scope);
    out_ += "\n";
  }

  void constant(const Value& v) {
    out_ += "    " + defined(v) + " = constant " + placed(v);
    const Array& a = *v.constant;
    if (a.size() > longest_) {
      const std::string name = store_ ? store_->put(a) : "";
      if (!store_ || !name.empty()) {
        out_ += store_ ? " at " + quoted(name) + "\n" : " elided\n";
        return;
      }
    }
    if (!info(a.dtype).has_kernels) {
      out_ += " bytes '" + hexadecimal(a.contiguous()) + "'\n";
      return;
    }
    out_ += " [";
    for (int64_t i = 0; i < a.size(); ++i) {
      if (i) out_ += ", ";
      if (is_bool(a.dtype))
        out_ += a.integer(i) ? "true" : "false";
      else if (is_float(a.dtype))
        out_ += AttrValue(a.number(i)).text();
      else
        out_ += std::to_string(a.integer(i));
    }
    out_ += "]\n";
  }

  void operands(const Operation& o) {
    size_t at = 0, list = 0;
    bool first = true;
    for (const OperandDef& def : o.op->operands()) {
      if (!first) out_ += ", ";
      first = false;
      if (def.kind == OperandKind::kTensor) {
        out_ += reference(o.operands[at++]);
        continue;
      }
      out_ += '[';
      for (int32_t i = 0; i < o.attrs.list_sizes[list]; ++i) {
        if (i) out_ += ", ";
        out_ += reference(o.operands[at++]);
      }
      out_ += ']';
      ++list;
    }
  }

  void attributes(const Operation& o) {
    std::string text;
    for (size_t i = 0; i < o.op->attrs().size(); ++i) {
      const AttrDef& def = o.op->attrs()[i];
      if (!def.required && o.attrs[i] == o.op->defaults[i]) continue;
      if (!text.empty()) text += ", ";
      text += std::string(def.name) + " = " + o.attrs[i].text();
    }
    if (!text.empty()) out_ += " {" + text + "}";
  }

  void operations(const Region& region, int indent) {
    const std::string pad(static_cast<size_t>(indent), ' ');
    for (const auto& o : region.operations) {
      out_ += pad;
      for (size_t i = 0; i < o->results.size(); ++i)
        out_ += (i ? ", " : "") + defined(*o->results[i]);
      if (!o->results.empty()) out_ += " = ";
      out_ += std::string(o->op->name()) + "(";
      operands(*o);
      out_ += ")";
      attributes(*o);
      out_ += " : ";
      for (size_t i = 0; i < o->results.size(); ++i)
        out_ += (i ? ", " : "") + placed(*o->results[i]);
      for (const auto& nested : o->regions) {
        out_ += " (";
        for (size_t i = 0; i < nested->arguments.size(); ++i)
          out_ += (i ? ", " : "") + defined(*nested->arguments[i]) + " : " +
                  placed(*nested->arguments[i]);
        out_ += ") {\n";
        operations(*nested, indent + 2);
        out_ += pad + "  yield ";
        for (size_t i = 0; i < nested->results.size(); ++i)
          out_ += (i ? ", " : "") + reference(nested->results[i]);
        out_ += "\n" + pad + "}";
      }
      if (!o->location.empty()) out_ += "  // " + o->location;
      out_ += "\n";
    }
  }

  int64_t longest_;
  ConstantStore* store_;
  std::string out_;
};

}  // namespace

std::string print(const Module& module) {
  Printer printer;
  printer.module(module);
  return printer.take();
}

std::string print(const Function& function) {
  Printer printer;
  printer.function(function);
  return printer.take();
}

std::string print_module(const Function& function, const std::string& module_name,
                         int64_t longest) {
  Printer printer(longest);
  printer.module_around(function, module_name);
  return printer.take();
}

std::string print(const Module& module, ConstantStore& store, int64_t longest) {
  Printer printer(longest, &store);
  printer.module(module);
  return printer.take();
}

std::string print_module(const Function& function, const std::string& module_name,
                         ConstantStore& store, int64_t longest) {
  Printer printer(longest, &store);
  printer.module_around(function, module_name);
  return printer.take();
}

}  // namespace paddle::ir
