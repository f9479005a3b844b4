#pragma once
// Transports, tables and readers of plug-ins as classes; part of plugin.hpp, which explains how plug-ins are
// written. The functions of a class throw Failure, or any exception, for errors.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "paddle/plugin/plugin.h"

namespace paddle::plugin {

/// An error with its status: PADDLE_DATA for a wrong value, for example.
class Failure : public std::exception {
 public:
  Failure(paddle_status status, std::string message)
      : status_(status), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  paddle_status status() const { return status_; }

 private:
  paddle_status status_;
  std::string message_;
};

/// An error that a function of the host has already set for the call.
struct ReportedFailure {
  paddle_status status;
};
inline void check(paddle_status status) {
  if (status != PADDLE_OK) throw ReportedFailure{status};
}

/// The table of the host, from PADDLE_PLUGIN on.
inline const paddle_host*& host() {
  static const paddle_host* table = nullptr;
  return table;
}

/// Calls `f`; its exception becomes the error of the call.
template <class F>
paddle_status guarded(paddle_call* call, const F& f) noexcept {
  try {
    f();
    return PADDLE_OK;
  } catch (const ReportedFailure& failure) {
    return failure.status;
  } catch (const Failure& failure) {
    return host()->fail(call, failure.status(), failure.what());
  } catch (const std::exception& error) {
    return host()->fail(call, PADDLE_INTERNAL, error.what());
  }
}

/// The keys of a plug-in, reader, transport or table in the config; valid as long as the struct.
class Options {
 public:
  Options() = default;
  /// Null for none.
  explicit Options(const paddle_options* raw) : raw_(raw) {}
  /// The value as text; "" where there is none.
  std::string text(const std::string& name) const {
    for (uint32_t i = 0; raw_ && i < raw_->count; ++i)
      if (name == raw_->names[i]) return raw_->values[i];
    return "";
  }
  int64_t integer(const std::string& name) const { return std::stoll(text(name)); }
  double number(const std::string& name) const { return std::stod(text(name)); }
  bool flag(const std::string& name) const { return text(name) == "true"; }

 private:
  const paddle_options* raw_ = nullptr;
};

#if PADDLE_PLUGIN_TARGET_MINOR >= 2

// --- transports ---

/// The rank that opens a transport.
class Rank {
 public:
  Rank(paddle_call* call, const paddle_rank& raw) : call_(call), raw_(raw) {}
  int32_t rank() const { return raw_.rank; }
  int32_t size() const { return raw_.size; }
  double timeout() const { return raw_.timeout; }
  std::string host(int32_t rank) const { return raw_.hosts[rank]; }
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /// The keys of the transport, while it is opened.
  Options options() const {
    return PADDLE_PLUGIN_COVERS(paddle_rank, options, raw_.struct_size) ? Options(raw_.options)
                                                                        : Options();
  }
#endif
  /// Publishes a value of this rank by a key.
  void put(const char* key, const std::string& value) const {
    const paddle_rendezvous& r = *raw_.rendezvous;
    check(r.put(r.context, call_, key, value.data(), value.size()));
  }
  /// The value of another rank, once it has published it.
  std::string get(int32_t peer, const char* key) const {
    const paddle_rendezvous& r = *raw_.rendezvous;
    std::string value(1024, '\0');
    size_t size = 0;
    check(r.get(r.context, call_, peer, key, value.data(), value.size(), &size));
    value.resize(size);
    return value;
  }

 private:
  paddle_call* call_;
  const paddle_rank& raw_;
};

using Messages = std::span<const paddle_message* const>;

/// The descriptor of a transport of the class T, which has a constructor from Rank and
///   void exchange(uint32_t kind, Messages sends, Messages receives);
///   void post(int32_t peer, uint32_t tag, const void* bytes, size_t size);
///   void take(int32_t peer, uint32_t tag, void* bytes, size_t size);
///   void abort(const char* reason) noexcept;
template <class T>
paddle_transport transport_of(const char* name, const char* doc,
                              [[maybe_unused]] const char* keys = nullptr) {
  paddle_transport out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.doc = doc;
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  out.keys = keys;
#endif
  out.open = [](paddle_call* call, const paddle_rank* rank, void** state) {
    return guarded(call, [&] { *state = new T(Rank(call, *rank)); });
  };
  out.exchange = [](void* state, paddle_call* call, uint32_t kind,
                    const paddle_message* const* sends, uint32_t send_count,
                    const paddle_message* const* receives, uint32_t receive_count) {
    return guarded(call, [&] {
      static_cast<T*>(state)->exchange(kind, Messages(sends, send_count),
                                       Messages(receives, receive_count));
    });
  };
  out.post = [](void* state, paddle_call* call, int32_t peer, uint32_t tag, const void* bytes,
                size_t size) {
    return guarded(call, [&] { static_cast<T*>(state)->post(peer, tag, bytes, size); });
  };
  out.take = [](void* state, paddle_call* call, int32_t peer, uint32_t tag, void* bytes,
                size_t size) {
    return guarded(call, [&] { static_cast<T*>(state)->take(peer, tag, bytes, size); });
  };
  out.abort = [](void* state, const char* reason) { static_cast<T*>(state)->abort(reason); };
  out.close = [](void* state) { delete static_cast<T*>(state); };
  return out;
}

// --- tables ---

/// What the engine does with records.
inline const paddle_records& records() {
  static const auto* const table =
      static_cast<const paddle_records*>(host()->table(PADDLE_RECORDS, 1));
  return *table;
}

/// The update of records of distinct keys, all of which the table has.
class Update {
 public:
  Update(paddle_call* call, const paddle_table_spec& spec, std::span<const uint64_t> keys,
         const void* gradients, const void* inputs)
      : keys_(keys), call_(call), spec_(spec), gradients_(gradients), inputs_(inputs) {}
  std::span<const uint64_t> keys() const { return keys_; }
  /// Updates the records of keys `first` and following.
  void apply(size_t first, std::span<void* const> of_keys) const {
    check(records().apply_update(
        &spec_, call_, of_keys.data(),
        static_cast<const std::byte*>(gradients_) + first * spec_.row_bytes, of_keys.size(),
        inputs_));
  }

 private:
  std::span<const uint64_t> keys_;
  paddle_call* call_;
  const paddle_table_spec& spec_;
  const void* gradients_;
  const void* inputs_;
};

/// Takes records by rising keys.
class Visitor {
 public:
  Visitor(paddle_record_visitor visitor, void* context) : visitor_(visitor), context_(context) {}
  void operator()(std::span<const uint64_t> keys, const void* const* of_keys) const {
    check(visitor_(context_, keys.data(), of_keys, keys.size()));
  }

 private:
  paddle_record_visitor visitor_;
  void* context_;
};

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
/// The keys of a table, while it is opened.
inline Options options_of(const paddle_table_spec& spec) {
  return PADDLE_PLUGIN_COVERS(paddle_table_spec, options, spec.struct_size) ? Options(spec.options)
                                                                            : Options();
}
#endif

/// The descriptor of a table of the class T, which has a constructor from paddle_table_spec and
///   int64_t count() const;
///   void read(std::span<const uint64_t> keys, int32_t missing, std::byte* rows) const;
///   void update(const Update& update);
///   void content(const Visitor& visit) const;
///   void restore(std::span<const uint64_t> keys, const std::byte* records);
template <class T>
paddle_table table_of(const char* name, const char* doc,
                      [[maybe_unused]] const char* keys = nullptr) {
  struct State {
    explicit State(const paddle_table_spec& given) : spec(given), table(given) {}
    const paddle_table_spec& spec;
    T table;
  };
  paddle_table out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.doc = doc;
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  out.keys = keys;
#endif
  out.open = [](paddle_call* call, const paddle_table_spec* spec, void** state) {
    return guarded(call, [&] { *state = new State(*spec); });
  };
  out.count = [](void* state) { return static_cast<const State*>(state)->table.count(); };
  out.read = [](void* state, paddle_call* call, const uint64_t* keys, size_t count, int32_t missing,
                void* rows) {
    return guarded(call, [&] {
      static_cast<const State*>(state)->table.read(std::span(keys, count), missing,
                                                   static_cast<std::byte*>(rows));
    });
  };
  out.update = [](void* state, paddle_call* call, const uint64_t* keys, size_t count,
                  const void* gradients, const void* inputs) {
    return guarded(call, [&] {
      auto& own = *static_cast<State*>(state);
      own.table.update(Update(call, own.spec, std::span(keys, count), gradients, inputs));
    });
  };
  out.content = [](void* state, paddle_call* call, paddle_record_visitor visitor, void* context) {
    return guarded(call, [&] {
      static_cast<const State*>(state)->table.content(Visitor(visitor, context));
    });
  };
  out.restore = [](void* state, paddle_call* call, const uint64_t* keys, const void* of_keys,
                   size_t count) {
    return guarded(call, [&] {
      static_cast<State*>(state)->table.restore(std::span(keys, count),
                                                static_cast<const std::byte*>(of_keys));
    });
  };
  out.close = [](void* state) { delete static_cast<State*>(state); };
  return out;
}

// --- readers ---

/// A sample that is filled in.
class Sample {
 public:
  Sample(const paddle_sample& raw, uint64_t seed, uint64_t epoch)
      : seed(seed), epoch(epoch), raw_(raw) {}
  /// Memory for a field of this shape.
  template <class T>
  T* field(uint32_t field, std::initializer_list<int64_t> shape) const {
    void* const memory =
        raw_.field(raw_.context, field, shape.begin(), static_cast<int32_t>(shape.size()));
    if (!memory) throw ReportedFailure{PADDLE_DATA};
    return static_cast<T*>(memory);
  }
  const uint64_t seed, epoch;

 private:
  const paddle_sample& raw_;
};

/// The descriptor of a reader of the class T, which has a constructor from Options and
///   std::string describe() const;                             a field a line
///   int64_t size() const;
///   void read(int64_t index, const Sample& sample) const;
///   std::string location(int64_t index) const;
///   uint64_t fingerprint() const;
template <class T>
paddle_reader reader_of(const char* name, const char* doc, const char* keys) {
  struct State {
    explicit State(const Options& options) : reader(options), fields(reader.describe()) {}
    T reader;
    std::string fields;
  };
  paddle_reader out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.doc = doc;
  out.keys = keys;
  out.open = [](paddle_call* call, const paddle_options* options, void** state) {
    return guarded(call, [&] { *state = new State(Options(options)); });
  };
  out.describe = [](void* state) { return static_cast<const State*>(state)->fields.c_str(); };
  out.size = [](void* state) { return static_cast<const State*>(state)->reader.size(); };
  out.read = [](void* state, paddle_call* call, int64_t index, uint64_t seed, uint64_t epoch,
                const paddle_sample* sample) {
    return guarded(call, [&] {
      static_cast<const State*>(state)->reader.read(index, Sample(*sample, seed, epoch));
    });
  };
  out.close = [](void* state) { delete static_cast<State*>(state); };
  out.location = [](void* state, int64_t index, char* text, size_t capacity) {
    const std::string place = static_cast<const State*>(state)->reader.location(index);
    text[place.copy(text, capacity - 1)] = '\0';
  };
  out.fingerprint = [](void* state) {
    return static_cast<const State*>(state)->reader.fingerprint();
  };
  return out;
}
#endif

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
/// The descriptor of a reader of a stream of the class T, which has a constructor from Options and
///   std::string describe() const;               a field a line
///   bool next(const Sample& sample);            false at the end
///   std::string position() const;               the place before the next sample
///   void seek(const std::string& position);
///   std::string location() const;               of the sample that `next` gave
///   uint64_t fingerprint() const;
template <class T>
paddle_reader stream_of(const char* name, const char* doc, const char* keys) {
  struct State {
    explicit State(const Options& options) : reader(options), fields(reader.describe()) {}
    T reader;
    std::string fields;
  };
  paddle_reader out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.doc = doc;
  out.keys = keys;
  out.open = [](paddle_call* call, const paddle_options* options, void** state) {
    return guarded(call, [&] { *state = new State(Options(options)); });
  };
  out.describe = [](void* state) { return static_cast<const State*>(state)->fields.c_str(); };
  out.close = [](void* state) { delete static_cast<State*>(state); };
  out.location = [](void* state, int64_t, char* text, size_t capacity) {
    const std::string place = static_cast<const State*>(state)->reader.location();
    text[place.copy(text, capacity - 1)] = '\0';
  };
  out.fingerprint = [](void* state) {
    return static_cast<const State*>(state)->reader.fingerprint();
  };
  out.next = [](void* state, paddle_call* call, const paddle_sample* sample) {
    bool has_more = false;
    const paddle_status status = guarded(
        call, [&] { has_more = static_cast<State*>(state)->reader.next(Sample(*sample, 0, 0)); });
    return status != PADDLE_OK || has_more ? status : paddle_status{PADDLE_DECLINED};
  };
  out.position = [](void* state, paddle_call* call) {
    return guarded(call, [&] {
      host()->write(call, static_cast<const State*>(state)->reader.position().c_str());
    });
  };
  out.seek = [](void* state, paddle_call* call, const char* position) {
    return guarded(call, [&] { static_cast<State*>(state)->reader.seek(position); });
  };
  return out;
}
#endif

}  // namespace paddle::plugin
