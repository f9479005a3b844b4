"""Cases of optimizer updates: the first and third step of PyTorch's optimizers, or of the published formulas.

PyTorch keeps some numbers of a step in float32, which limits what float64 cases can tell."""

import numpy as np
import torch

LR = 0.05


def cases_optimizers(t):
    def third_step(op, optimizer, states, decay=0.0, numbered=True, attrs=None, shape=(3, 4)):
        p = torch.tensor(t.normal(*shape, dtype="float64"), requires_grad=True)
        run = optimizer([p])
        for number in range(1, 4):
            grad = t.normal(*shape, dtype="float64")
            p.grad = torch.tensor(grad)
            before, param = {k: v.clone() if torch.is_tensor(v) else v for k, v in run.state[p].items()}, p.detach().numpy().copy()
            run.step()
            if number in (1, 3):
                read = lambda source, key: np.broadcast_to(np.asarray(source.get(key, 0.0), np.float64), shape).copy()
                args = {"param": param, "grad": grad}
                for ours, theirs in states.items():
                    args[ours] = read(before, theirs)
                args["lr"] = np.array(LR)
                if numbered:
                    args["step"] = np.array(number)
                args.update(attrs or {})
                if decay:
                    args["weight_decay"] = decay
                after = run.state[p]
                t.add(op, args, outputs=[p.detach().numpy().copy()] + [read(after, k) for k in states.values()], rtol=1e-6, atol=1e-8)

    O = torch.optim
    for decay in (0.0, 0.1):
        third_step("adamax_update", lambda p: O.Adamax(p, LR, weight_decay=decay), {"moment": "exp_avg", "norm": "exp_inf"}, decay)
        third_step("adadelta_update", lambda p: O.Adadelta(p, LR, rho=0.95, weight_decay=decay), {"mean_square": "square_avg", "mean_delta": "acc_delta"},
                   decay, numbered=False)
        third_step("nadam_update", lambda p: O.NAdam(p, LR, weight_decay=decay), {"moment1": "exp_avg", "moment2": "exp_avg_sq", "product": "mu_product"}, decay)
        for beta2 in (0.999, 0.5):
            third_step("radam_update", lambda p: O.RAdam(p, LR, betas=(0.9, beta2), weight_decay=decay), {"moment1": "exp_avg", "moment2": "exp_avg_sq"},
                       decay, attrs={"beta2": beta2})
    for t0 in (1e6, 1.0):
        third_step("asgd_update", lambda p: O.ASGD(p, LR, lambd=0.02, t0=t0, weight_decay=0.1), {"average": "ax"}, 0.1, attrs={"lambd": 0.02, "t0": t0})
    p = torch.tensor(t.normal(3, 4, dtype="float64"), requires_grad=True)
    run = O.Rprop([p], LR)
    for number in range(1, 4):
        p.grad = torch.tensor(t.normal(3, 4, dtype="float64"))
        grad, param = p.grad.numpy().copy(), p.detach().numpy().copy()
        state = run.state[p]
        previous = state["prev"].numpy().copy() if state else np.zeros((3, 4))
        size = state["step_size"].numpy().copy() if state else np.full((3, 4), LR)
        run.step()
        t.add("rprop_update", {"param": param, "grad": grad, "previous": previous, "step_size": size, "lr": np.array(LR)},
              outputs=[p.detach().numpy().copy(), run.state[p]["prev"].numpy().copy(), run.state[p]["step_size"].numpy().copy()], rtol=1e-6, atol=1e-8)

    x, g, m, v = (t.normal(3, 4, dtype="float64") for _ in range(4))
    v = v * v
    m1, v1 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    change = (m1 / (1 - 0.9**3)) / (np.sqrt(v1 / (1 - 0.999**3)) + 1e-6) + 0.01 * x
    out = x - LR * np.linalg.norm(x) / np.linalg.norm(change) * change
    lamb = {"param": x, "grad": g, "moment1": m, "moment2": v, "lr": np.array(LR), "step": np.array(3)}
    t.add("lamb_update", lamb, outputs=[out, m1, v1], rtol=1e-9, atol=1e-12)
    t.add("lamb_update", {**lamb, "skip": np.array(True)}, outputs=[x, m, v])
    half = {k: (a.astype(np.float32) if a.ndim else a) for k, a in lamb.items()}
    t.add("lamb_update", {**half, "param": x.astype(np.float16), "grad": g.astype(np.float16), "master": x.astype(np.float32)},
          outputs=[out.astype(np.float16), m1.astype(np.float32), v1.astype(np.float32), out.astype(np.float32)], rtol=2e-3, atol=2e-3,
          skip_outputs=(1, 2, 3))
    rate = LR * 0.001 * np.linalg.norm(x) / (np.linalg.norm(g) + 0.0005 * np.linalg.norm(x))
    velocity = 0.9 * m + rate * (g + 0.0005 * x)
    t.add("lars_update", {"param": x, "grad": g, "velocity": m, "lr": np.array(LR)}, outputs=[x - velocity, velocity], rtol=1e-9, atol=1e-12)
    zero = np.zeros((3, 4))
    t.add("lars_update", {"param": zero, "grad": g, "velocity": m, "lr": np.array(LR)}, outputs=[-(0.9 * m + LR * g), 0.9 * m + LR * g])
    t.add("adadelta_update", {"param": x, "grad": g, "mean_square": v, "mean_delta": v, "lr": np.array(LR), "scale": np.array(0.5), "bound": 0.2},
          outputs=[x - LR * (d := np.sqrt(v + 1e-6) / np.sqrt((s := 0.95 * v + 0.05 * (c := np.clip(g * 0.5, -0.2, 0.2)) ** 2) + 1e-6) * c), s,
                   0.95 * v + 0.05 * d * d], rtol=1e-9, atol=1e-12)
    t.reject("lamb_update", {**lamb, "grad": g[:2]})
