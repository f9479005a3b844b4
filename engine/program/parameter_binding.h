#pragma once
// How a step reaches the values of the store. The step's code is written once; under a tracer the
// values are arguments and results of the function, eagerly they are arrays.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/tracer.h"
#include "lang/eval/host.h"
#include "program/parameter_store.h"
#include "program/table_host.h"

namespace paddle::program {

/// First values of parameters and states by path, computed when they are asked for.
using DeferredValues = std::map<std::string, std::function<Array()>>;

class ParameterBinding : public lang::ParameterProvider {
 public:
  /// `use_float64` makes float32 parameters and states float64.
  ParameterBinding(ParameterStore& store, bool use_float64)
      : store_(store), use_float64_(use_float64) {}

  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const lang::Initializer& init) override;
  Tensor state(const std::string& path, const Dims& shape, DType dtype,
               const lang::Initializer& init, lang::StateScope scope) override;
  void update(const std::string& path, const Tensor& value) override;
  int64_t static_value(const Dim& dim) override;
  DType stored_dtype(DType declared) const override { return widened(declared); }
  DType stored_dtype(const std::string& path, DType declared) const override;
  bool is_frozen(const std::string& path) const override { return frozen && frozen(path); }
  /// With a host of tables, its rows, as an input of the function; the keys must be a field. Else
  /// the rows are found among the parameters that hold the table (`table_keys`, `table_weight`).
  Tensor table_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype,
                    const lang::Initializer& init, const Tensor& mask) override;

  /// A state of the optimizer, made of `initial` if it is new.
  Tensor slot(const std::string& name, const Dims& shape, DType dtype, double initial);
  /// The same, made as a copy of a parameter, or of its master.
  Tensor slot_like(const std::string& name, const std::string& parameter);
  void set_slot(const std::string& name, const Tensor& value);
  void set_parameter(const std::string& path, const Tensor& value);
  /// The parameter in float32 where it is kept in 16 bits, else undefined.
  Tensor master(const std::string& path);
  void set_master(const std::string& path, const Tensor& value);
  /// The path of the parameter that a tensor is; "" if it is none.
  std::string name_of(const Tensor& tensor) const;
  /// Notes a parameter that an operation wants in float32; other tensors are passed over.
  void note_kept(const Tensor& tensor);
  /// A parameter that exists.
  Tensor existing(const std::string& path);
  /// From now on the parameter is another value, with the same elements: what reads it now can be
  /// told from what has read it before. Gives that value.
  Tensor reread(const std::string& path);
  /// Model states keep the version that the step began with where `skip`, a 0-D bool, is true.
  void keep_states_where(const Tensor& skip);
  /// Gives up the new versions of states so far.
  void give_up_updates();
  /// `finish` hands over the new versions of states so far, and none that come later.
  void hold_updates() { held_ = states_; }
  /// Parameters that were asked for, in order.
  const std::vector<std::string>& used() const { return used_; }
  const ParameterStore& store() const { return store_; }
  /// Which parameters and states the optimizer does not change; null: none.
  std::function<bool(const std::string& path)> frozen;
  /// Values that `static(dim)` may take, by the dim's name; those asked for are noted.
  std::map<std::string, int64_t> known_dims;
  std::map<std::string, int64_t> fixed_dims;
  /// If set, new parameters and states are put in here, and the store's arrays only have their
  /// types and shapes.
  DeferredValues* deferred = nullptr;
  TableHost* tables = nullptr;           ///< those that are not among the parameters
  std::map<std::string, Tensor> fields;  ///< of the data, which keys of tables must be
  bool numbers_rows = false;             ///< whether lookups have `TableLookup::numbers`
  /// The lookups in tables, in order; each table and field once.
  const std::vector<TableLookup>& lookups() const { return lookups_; }
  std::set<std::string> kept;  ///< parameters that `note_kept` met
  bool lacks_dims = false;     ///< a value was asked for that is not known

  /// Hands new versions over: to the function's results, or into the store.
  void finish();

 protected:
  virtual Tensor open(ir::PortKind kind, const std::string& name, const Array& value) = 0;
  virtual void close(ir::PortKind kind, const std::string& name, const Tensor& value) = 0;
  /// Gives a lookup its rows, of this type, and numbers if they are wanted.
  virtual void open_rows(TableLookup& lookup, const Tensor& keys, const TensorType& rows) = 0;
  ParameterStore& store_;

 private:
  Tensor stored_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype);
  struct Slot {
    Tensor value;
    bool changed = false;
    Tensor before = {};  ///< the version that the step began with
  };
  Slot& open_state(const std::string& name, const Dims& shape, DType dtype,
                   const std::function<Array()>& make);
  Array first_value(const std::string& path, const Dims& shape, DType dtype,
                    const lang::Initializer& init) const;
  DType widened(DType dtype) const {
    return use_float64_ && dtype == DType::kF32 ? DType::kF64 : dtype;
  }

  bool use_float64_;
  std::map<std::string, Slot> parameters_, states_;
  std::optional<std::map<std::string, Slot>> held_;
  std::vector<std::string> used_;
  std::vector<TableLookup> lookups_;
};

class TraceBinding final : public ParameterBinding {
 public:
  TraceBinding(ParameterStore& store, bool use_float64, ir::Tracer& tracer)
      : ParameterBinding(store, use_float64), tracer_(tracer) {}

 private:
  Tensor open(ir::PortKind kind, const std::string& name, const Array& value) override;
  void close(ir::PortKind kind, const std::string& name, const Tensor& value) override;
  void open_rows(TableLookup& lookup, const Tensor& keys, const TensorType& rows) override;
  ir::Tracer& tracer_;
};

class EagerBinding final : public ParameterBinding {
 public:
  using ParameterBinding::ParameterBinding;

 private:
  Tensor open(ir::PortKind kind, const std::string& name, const Array& value) override;
  void close(ir::PortKind kind, const std::string& name, const Tensor& value) override;
  void open_rows(TableLookup& lookup, const Tensor& keys, const TensorType& rows) override;
};

}  // namespace paddle::program
