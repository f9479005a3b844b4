"""Makes golden.npz: 30 updates in float64 by PyTorch's optimizers and rates of its schedules.

Needs PyTorch and Transformers. The network is tanh(x @ w1 + b1) @ w2 + b2 with the mean squared
error; weights are stored as [inputs, outputs]. Optimizers that PyTorch lacks or defines otherwise
(Lion, LAMB, LARS, schedule-free AdamW, RMSProp) are written here after their papers.
"""
import math
import os

import numpy as np
import torch
import transformers

torch.set_default_dtype(torch.float64)
torch.manual_seed(3)
STEPS = 30
x, y = torch.randn(16, 5), torch.randn(16, 3)
initial = [torch.randn(5, 8) * 0.5, torch.randn(8) * 0.1, torch.randn(8, 3) * 0.5, torch.randn(3) * 0.1]
names = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
out = {"x": x.numpy(), "y": y.numpy()}
for name, value in zip(names, initial):
    out[name] = value.numpy()


def loss_of(p):
    return ((torch.tanh(x @ p[0] + p[1]) @ p[2] + p[3] - y) ** 2).mean()


def train(case, make, on_step=None):
    p = [value.clone().requires_grad_() for value in initial]
    optimizer = make(p)
    for step in range(STEPS):
        for each in p:
            each.grad = None
        loss_of(p).backward()
        optimizer.step()
        if on_step:
            on_step(step, p)
    for name, value in zip(names, p):
        out[f"{case}/{name}"] = value.detach().numpy()


class Own:
    """An optimizer as a function of (parameter, gradient, state, step)."""

    def __init__(self, parameters, update):
        self.parameters, self.update, self.step_number = parameters, update, 0
        self.states = [{} for _ in parameters]

    @torch.no_grad()
    def step(self):
        self.step_number += 1
        for p, state in zip(self.parameters, self.states):
            self.update(p, p.grad, state, self.step_number)


def rmsprop(p, g, s, t, lr=0.01, rho=0.95, eps=1e-4):
    """With epsilon under the root, as in PaddlePaddle and TensorFlow."""
    square = s.setdefault("square", torch.zeros_like(p))
    square.mul_(rho).add_((1 - rho) * g * g)
    p.sub_(lr * g / (square + eps).sqrt())


def lion(p, g, s, t, lr=0.01, b1=0.9, b2=0.99, decay=0.1):
    m = s.setdefault("m", torch.zeros_like(p))
    direction = torch.sign(b1 * m + (1 - b1) * g)
    p.mul_(1 - lr * decay).sub_(lr * direction)
    m.mul_(b2).add_((1 - b2) * g)


def lamb(p, g, s, t, lr=0.02, b1=0.9, b2=0.999, eps=1e-6, decay=0.1):
    m, v = s.setdefault("m", torch.zeros_like(p)), s.setdefault("v", torch.zeros_like(p))
    m.mul_(b1).add_((1 - b1) * g)
    v.mul_(b2).add_((1 - b2) * g * g)
    change = (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps) + decay * p
    size, length = p.norm(), change.norm()
    p.sub_(lr * (size / length if size > 0 and length > 0 else 1) * change)


def lars(p, g, s, t, lr=1.0, momentum=0.9, coefficient=0.01, decay=0.1):
    v = s.setdefault("v", torch.zeros_like(p))
    size, length = p.norm(), g.norm()
    v.mul_(momentum).add_(lr * coefficient * size / (length + decay * size) * (g + decay * p))
    p.sub_(v)


class ScheduleFree:
    def __init__(self, parameters, lr=0.05, b1=0.9, b2=0.999, eps=1e-8, decay=0.1, rising=5):
        self.parameters, self.t, self.sum, self.largest = parameters, 0, 0.0, 0.0
        self.z = [p.detach().clone() for p in parameters]
        self.v = [torch.zeros_like(p) for p in parameters]
        self.options = lr, b1, b2, eps, decay, rising

    @torch.no_grad()
    def step(self):
        lr, b1, b2, eps, decay, rising = self.options
        self.t += 1
        rate = lr * min(1, self.t / rising)
        self.largest = max(self.largest, rate)
        weight = self.largest**2
        self.sum += weight
        share = weight / self.sum
        for p, z, v in zip(self.parameters, self.z, self.v):
            v.mul_(b2).add_((1 - b2) * p.grad**2)
            direction = p.grad / ((v / (1 - b2**self.t)).sqrt() + eps) + decay * p
            p.lerp_(z, share).add_(direction, alpha=rate * (b1 * (1 - share) - 1))
            z.sub_(direction, alpha=rate)

    @torch.no_grad()
    def evaluate(self):
        for p, z in zip(self.parameters, self.z):
            p.lerp_(z, 1 - 1 / self.options[1])


class Muon:
    """PyTorch's Muon with its iteration in float64, over matrices [outputs, inputs]; AdamW for vectors."""

    def __init__(self, parameters):
        import torch.optim._muon as module

        def exact(grad, coefficients, steps, eps):
            a, b, c = coefficients
            g = grad.T if grad.size(0) > grad.size(1) else grad
            g = g / g.norm().clamp(min=eps)
            for _ in range(steps):
                gram = g @ g.T
                g = a * g + (b * gram + c * gram @ gram) @ g
            return g.T if grad.size(0) > grad.size(1) else g

        module._zeropower_via_newtonschulz = exact
        self.parameters = parameters
        self.matrices = [p.detach().T.clone().requires_grad_() for p in parameters if p.ndim == 2]
        self.muon = torch.optim.Muon(self.matrices, lr=0.02, weight_decay=0.1)
        self.adamw = torch.optim.AdamW([p for p in parameters if p.ndim < 2], lr=0.01, weight_decay=0.1)

    def step(self):
        own = [p for p in self.parameters if p.ndim == 2]
        for p, m in zip(own, self.matrices):
            m.grad = p.grad.T.clone()
        self.muon.step()
        self.adamw.step()
        with torch.no_grad():
            for p, m in zip(own, self.matrices):
                p.copy_(m.T)


o = torch.optim
train("sgd", lambda p: o.SGD(p, lr=0.1, weight_decay=0.01))
train("momentum", lambda p: o.SGD(p, lr=0.05, momentum=0.9, nesterov=True))
train("adam", lambda p: o.Adam(p, lr=0.02, weight_decay=0.01))
train("adamw", lambda p: o.AdamW(p, lr=0.02, weight_decay=0.1))
train("adagrad", lambda p: o.Adagrad(p, lr=0.1, eps=1e-6))
# PyTorch adds epsilon after the root: its 1e-10 is our 1e-20, where the mean square is far larger.
train("rmsprop", lambda p: o.RMSprop(p, lr=0.01, alpha=0.95, eps=1e-10))
train("rmsprop_centered", lambda p: o.RMSprop(p, lr=0.01, alpha=0.95, eps=1e-10, centered=True, momentum=0.9))
train("rmsprop_epsilon", lambda p: Own(p, rmsprop))
train("adamax", lambda p: o.Adamax(p, lr=0.02))
train("adadelta", lambda p: o.Adadelta(p, lr=1, rho=0.95, eps=1e-6))
train("asgd", lambda p: o.ASGD(p, lr=0.1, lambd=1e-3))
train("nadam", lambda p: o.NAdam(p, lr=0.02))
train("radam", lambda p: o.RAdam(p, lr=0.02))
train("rprop", lambda p: o.Rprop(p, lr=0.01))
train("adafactor", lambda p: o.Adafactor(p, lr=0.05, weight_decay=0.1))
train("muon", Muon)
train("lion", lambda p: Own(p, lion))
train("lamb", lambda p: Own(p, lamb))
train("lars", lambda p: Own(p, lars))


def train_lbfgs(case, steps=STEPS, **options):
    """Each update is one step of PyTorch's optimizer, which evaluates the loss several times."""
    p = [value.clone().requires_grad_() for value in initial]
    optimizer = o.LBFGS(p, **options)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(p)
        loss.backward()
        return loss

    for step in range(steps):
        optimizer.step(closure)
    for name, value in zip(names, p):
        out[f"{case}/{name}"] = value.detach().numpy()


train_lbfgs("lbfgs", max_iter=1, history_size=6, line_search_fn="strong_wolfe", max_eval=25)
train_lbfgs("lbfgs_many", steps=6, max_iter=8, history_size=5, line_search_fn="strong_wolfe")
train_lbfgs("lbfgs_fixed", lr=0.2, max_iter=1, history_size=10)
free = []
train("schedule_free_adamw", lambda p: free.append(ScheduleFree(p)) or free[0],
      lambda step, p: free[0].evaluate() if step == STEPS - 1 else None)

# The moving average of weights, which begins with the initial ones.
for case, decay_of in (("ema", lambda t: 0.9), ("ema_warmup", lambda t: min(0.999, (1 + t) / (10 + t)))):
    averages = [value.clone() for value in initial]

    def follow(step, p):
        for average, value in zip(averages, p):
            average.lerp_(value.detach(), 1 - decay_of(step + 1))

    train(case, lambda p: o.SGD(p, lr=0.1), follow)
    for name, value in zip(names, averages):
        out[f"{case}/{name}"] = value.numpy()

# The equal average of the weights after updates 8, 11, 14, …, by torch.optim.swa_utils.
mean_models = []


def follow_mean(step, p):
    if step == 0:
        mean_models.append(torch.optim.swa_utils.AveragedModel(torch.nn.ParameterList([v.detach() for v in p])))
    if step + 1 >= 8 and (step + 1 - 8) % 3 == 0:
        mean_models[0].update_parameters(torch.nn.ParameterList([v.detach() for v in p]))


train("swa", lambda p: o.SGD(p, lr=0.1), follow_mean)
for name, value in zip(names, mean_models[0].module):
    out[f"swa/{name}"] = value.detach().numpy()

# Rates of the update numbers 0 … 29, with the base rate 0.1.
def rates(case, make, values=None):
    p = torch.zeros(1, requires_grad=True)
    optimizer = o.SGD([p], lr=0.1)
    schedule = make(optimizer)
    line = []
    for step in range(STEPS):
        line.append(optimizer.param_groups[0]["lr"])
        p.grad = torch.zeros(1)
        optimizer.step()
        schedule.step(values[step]) if values else schedule.step()
    out["schedule/" + case] = np.array(line)


s = o.lr_scheduler
rates("step", lambda a: s.StepLR(a, 7, 0.5))
rates("multi_step", lambda a: s.MultiStepLR(a, [5, 20], 0.3))
rates("exponential", lambda a: s.ExponentialLR(a, 0.9))
rates("polynomial", lambda a: s.PolynomialLR(a, 30, 2))
rates("linear", lambda a: s.LinearLR(a, 1, 0.1, 30))
rates("cosine", lambda a: s.CosineAnnealingLR(a, 30, 0.01))
rates("cosine_restarts", lambda a: s.CosineAnnealingWarmRestarts(a, 4, 2, 0.01))
rates("one_cycle", lambda a: s.OneCycleLR(a, 0.1, total_steps=30, div_factor=25, final_div_factor=40))
rates("cyclic", lambda a: s.CyclicLR(a, 0.1, 0.4, 3, 5, mode="triangular2", cycle_momentum=False))
rates("piecewise", lambda a: s.LambdaLR(a, lambda t: 1 if t < 5 else 0.5 if t < 20 else 0.1))
rates("inverse_sqrt", lambda a: transformers.get_inverse_sqrt_schedule(a, 0, 8))
rates("wsd", lambda a: transformers.get_wsd_schedule(a, 0, 10, num_training_steps=30, num_stable_steps=20,
                                                      decay_type="linear", min_lr_ratio=0.1))
rates("wsd_cosine", lambda a: transformers.get_wsd_schedule(a, 0, 10, num_training_steps=30, num_stable_steps=20,
                                                             decay_type="cosine", min_lr_ratio=0.1))
rates("noam", lambda a: s.LambdaLR(a, lambda t: 16**-0.5 * min((t + 1) ** -0.5, (t + 1) * 6**-1.5)))
generator = np.random.default_rng(5)
values = list(np.round(np.exp(-np.arange(STEPS) / 8) + 0.4 + generator.normal(0, 0.05, STEPS), 4))
out["plateau_values"] = np.array(values)
rates("reduce_on_plateau", lambda a: s.ReduceLROnPlateau(a, factor=0.5, patience=2, cooldown=1, threshold=1e-2), values)
rates("reduce_on_plateau_max",
      lambda a: s.ReduceLROnPlateau(a, mode="max", factor=0.3, patience=1, threshold=0.02, threshold_mode="abs",
                                    min_lr=0.005), values)
np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.npz"), **out)
