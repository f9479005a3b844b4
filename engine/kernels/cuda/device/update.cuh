// Updates of parameters by optimizers. The text of an instance defines the types Compute, Param,
// Grad, State0 to State2, Master, Rate, Step, Skip and Scale.

struct UpdateArguments {
  const void *param, *grad, *state[3], *master;
  void *out, *new_state[3], *new_master;
  const void *rate, *step, *skip, *scale;  ///< scalars; null if absent
  int64_t size;
  double a, b, epsilon, decay, bound;  ///< a and b: momentum, betas or rho
  int64_t flag;                        ///< Nesterov, centered, or decoupled decay
};

/// What an update needs of the scalars of a step, combined in double and rounded once.
struct UpdateScalars {
  Compute rate, epsilon, decay, shrink, a, b, scale, bound;
  bool skipped;
};

/// base to a power that is a whole number.
PADDLE_DEVICE double power(double base, double exponent) {
  double result = 1;
  for (uint64_t left = (uint64_t)exponent; left != 0; left >>= 1) {
    if (left & 1) result *= base;
    base *= base;
  }
  return result;
}

template <bool kAdam>
PADDLE_DEVICE UpdateScalars update_scalars(const UpdateArguments& arguments) {
  __shared__ UpdateScalars shared;
  if (threadIdx.x == 0) {
    UpdateScalars s;
    double rate = (double)loaded(((const Rate*)arguments.rate)[0]);
    double epsilon = arguments.epsilon, decay = arguments.decay, shrink = 1;
    if constexpr (kAdam) {
      const double step = (double)loaded(((const Step*)arguments.step)[0]);
      // rate m / c1 / (sqrt(v / c2) + e), with c = 1 - beta^step, as one product and one quotient.
      const double root = ::sqrt(1 - power(arguments.b, step));
      if (arguments.flag) {
        shrink = 1 - rate * decay;
        decay = 0;
      }
      rate = rate * root / (1 - power(arguments.a, step));
      epsilon *= root;
    }
    s.rate = (Compute)rate;
    s.epsilon = (Compute)epsilon;
    s.decay = (Compute)decay;
    s.shrink = (Compute)shrink;
    s.a = (Compute)arguments.a;
    s.b = (Compute)arguments.b;
    s.scale = arguments.scale ? (Compute)loaded(((const Scale*)arguments.scale)[0]) : (Compute)1;
    s.bound = (Compute)arguments.bound;
    s.skipped = arguments.skip && loaded(((const Skip*)arguments.skip)[0]) != 0;
    shared = s;
  }
  __syncthreads();
  return shared;
}

/// The scaled and clipped gradient, propagating NaN.
PADDLE_DEVICE Compute clipped_gradient(Compute gradient, const UpdateScalars& s) {
  const Compute scaled = gradient * s.scale, above = scaled < -s.bound ? -s.bound : scaled;
  return above > s.bound ? s.bound : above;
}

// Each rule computes one element: `p` the parameter, `g` the gradient, `m` the states.

struct Sgd {
  static constexpr int kStates = 0;
  static constexpr bool kAdam = false;
  PADDLE_DEVICE static Compute apply(Compute p, Compute g, Compute*, const UpdateScalars& s, bool) {
    return p - s.rate * (g + s.decay * p);
  }
};
struct Momentum {
  static constexpr int kStates = 1;
  static constexpr bool kAdam = false;
  PADDLE_DEVICE static Compute apply(Compute p, Compute g, Compute* m, const UpdateScalars& s,
                                     bool nesterov) {
    const Compute slope = g + s.decay * p, velocity = s.a * m[0] + slope;
    m[0] = velocity;
    return p - s.rate * (nesterov ? slope + s.a * velocity : velocity);
  }
};
struct Adam {
  static constexpr int kStates = 2;
  static constexpr bool kAdam = true;
  PADDLE_DEVICE static Compute apply(Compute p, Compute g, Compute* m, const UpdateScalars& s,
                                     bool) {
    const Compute slope = g + s.decay * p;
    m[0] = s.a * m[0] + ((Compute)1 - s.a) * slope;
    m[1] = s.b * m[1] + ((Compute)1 - s.b) * slope * slope;
    return p * s.shrink - s.rate * m[0] / (fn::sqrt(m[1]) + s.epsilon);
  }
};
struct Adagrad {
  static constexpr int kStates = 1;
  static constexpr bool kAdam = false;
  PADDLE_DEVICE static Compute apply(Compute p, Compute g, Compute* m, const UpdateScalars& s,
                                     bool) {
    const Compute slope = g + s.decay * p;
    m[0] = m[0] + slope * slope;
    return p - s.rate * slope / (fn::sqrt(m[0]) + s.epsilon);
  }
};
struct Rmsprop {
  static constexpr int kStates = 3;
  static constexpr bool kAdam = false;
  PADDLE_DEVICE static Compute apply(Compute p, Compute g, Compute* m, const UpdateScalars& s,
                                     bool centered) {
    const Compute slope = g + s.decay * p, rest = (Compute)1 - s.b;
    m[0] = s.b * m[0] + rest * slope * slope;
    if (centered) m[1] = s.b * m[1] + rest * slope;
    const Compute variance = m[0] - (centered ? m[1] * m[1] : (Compute)0 * m[1] * m[1]);
    m[2] = s.a * m[2] + s.rate * slope / fn::sqrt(variance + s.epsilon);
    return p - m[2];
  }
};

template <int kWidth, class T>
PADDLE_DEVICE Pack<T, kWidth> load_wide(const void* from, int64_t at) {
  return *(const Pack<T, kWidth>*)((const T*)from + at);
}
template <int kWidth, class T>
PADDLE_DEVICE void store_wide(void* to, int64_t at, const Pack<T, kWidth>& pack) {
  *(Pack<T, kWidth>*)((T*)to + at) = pack;
}

template <class Rule, bool kMaster, int kWidth>
PADDLE_DEVICE void update_elements(const UpdateArguments& arguments, const UpdateScalars& s,
                                   int64_t at) {
  auto param = load_wide<kWidth, Param>(arguments.param, at);
  const auto grad = load_wide<kWidth, Grad>(arguments.grad, at);
  Pack<State0, kWidth> state0;
  Pack<State1, kWidth> state1;
  Pack<State2, kWidth> state2;
  Pack<Master, kWidth> master;
  if constexpr (Rule::kStates > 0) state0 = load_wide<kWidth, State0>(arguments.state[0], at);
  if constexpr (Rule::kStates > 1) state1 = load_wide<kWidth, State1>(arguments.state[1], at);
  if constexpr (Rule::kStates > 2) state2 = load_wide<kWidth, State2>(arguments.state[2], at);
  if constexpr (kMaster) master = load_wide<kWidth, Master>(arguments.master, at);
  if (!s.skipped) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      Compute m[3] = {(Compute)0, (Compute)0, (Compute)0};
      if constexpr (Rule::kStates > 0) m[0] = convert<Compute>(state0.values[k]);
      if constexpr (Rule::kStates > 1) m[1] = convert<Compute>(state1.values[k]);
      if constexpr (Rule::kStates > 2) m[2] = convert<Compute>(state2.values[k]);
      Compute old;
      if constexpr (kMaster) {
        old = convert<Compute>(master.values[k]);
      } else {
        old = convert<Compute>(param.values[k]);
      }
      const Compute g = clipped_gradient(convert<Compute>(grad.values[k]), s);
      const Compute value = Rule::apply(old, g, m, s, arguments.flag != 0);
      param.values[k] = convert<Param>(value);
      if constexpr (kMaster) master.values[k] = convert<Master>(value);
      if constexpr (Rule::kStates > 0) state0.values[k] = convert<State0>(m[0]);
      if constexpr (Rule::kStates > 1) state1.values[k] = convert<State1>(m[1]);
      if constexpr (Rule::kStates > 2) state2.values[k] = convert<State2>(m[2]);
    }
  }
  store_wide<kWidth, Param>(arguments.out, at, param);
  if constexpr (Rule::kStates > 0) store_wide<kWidth, State0>(arguments.new_state[0], at, state0);
  if constexpr (Rule::kStates > 1) store_wide<kWidth, State1>(arguments.new_state[1], at, state1);
  if constexpr (Rule::kStates > 2) store_wide<kWidth, State2>(arguments.new_state[2], at, state2);
  if constexpr (kMaster) store_wide<kWidth, Master>(arguments.new_master, at, master);
}

/// kWidth elements per thread at a time where addresses allow it.
template <class Rule, bool kMaster, int kWidth>
PADDLE_DEVICE void update_all(const UpdateArguments& arguments) {
  const UpdateScalars s = update_scalars<Rule::kAdam>(arguments);
  const int64_t step = (int64_t)gridDim.x * kBlockThreads * kWidth;
  for (int64_t at = ((int64_t)blockIdx.x * kBlockThreads + threadIdx.x) * kWidth;
       at < arguments.size; at += step) {
    if (at + kWidth <= arguments.size) {
      update_elements<Rule, kMaster, kWidth>(arguments, s, at);
    } else {
      for (int64_t i = at; i < arguments.size; ++i)
        update_elements<Rule, kMaster, 1>(arguments, s, i);
    }
  }
}

/// Updates of several parameters: rows of the grid are parameters.
constexpr int kMergedUpdates = 22;
struct MergedArguments {
  UpdateArguments updates[kMergedUpdates];
};
template <class Rule, bool kMaster, int kWidth>
PADDLE_DEVICE void update_each(const MergedArguments& arguments) {
  update_all<Rule, kMaster, kWidth>(arguments.updates[blockIdx.y]);
}
