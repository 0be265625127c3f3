// SPDX-License-Identifier: Apache-2.0
#include "cel/estimate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cel/call_estimate.h"
#include "cel/cost.h"
#include "cel/device_sizes.h"
#include "cel/size_range.h"

namespace devmgr::cel {
namespace {

using Path = std::vector<std::string>;

/// The sizes of the keys and values that a list or a map holds.
struct EntrySize {
  bool is_list = false;
  SizeRange key;
  SizeRange value;
};

std::optional<EntrySize> Union(const std::optional<EntrySize>& a,
                               const std::optional<EntrySize>& b) {
  if (!a || !b) return std::nullopt;
  return EntrySize{a->is_list, cel::Union(a->key, b->key),
                   cel::Union(a->value, b->value)};
}

struct SizedName {
  std::string name;
  Path path;
  std::optional<SizeRange> size;
  std::optional<EntrySize> entry_size;
};

/// Whether all values of a type have the size 1.
bool IsScalar(const Type& type) {
  switch (type.kind) {
    case TypeKind::kBool:
    case TypeKind::kDouble:
    case TypeKind::kDuration:
    case TypeKind::kInt:
    case TypeKind::kTimestamp:
    case TypeKind::kUint:
      return true;
    case TypeKind::kOpaque:
      return IsOptional(type) && IsScalar(*type.params[0]);
    default:
      return false;
  }
}

Path Extended(Path path, std::string part) {
  path.push_back(std::move(part));
  return path;
}

/// Recursion is bounded by the depth of the tree.
class Estimator {
 public:
  explicit Estimator(const Checked& checked)
      : checked_(checked),
        paths_(checked.ast.nodes.size()),
        sizes_(checked.ast.nodes.size()),
        entry_sizes_(checked.ast.nodes.size()) {}

  CostRange Run() { return Cost(checked_.ast.root); }

 private:
  const Expr& At(ExprId id) const { return checked_.ast[id]; }
  static std::size_t Index(ExprId id) { return static_cast<std::size_t>(id); }

  const SizedName* FindLocal(std::string_view name) const {
    const auto found = std::find_if(
        locals_.rbegin(), locals_.rend(),
        [&](const SizedName& local) { return local.name == name; });
    return found == locals_.rend() ? nullptr : &*found;
  }

  CostRange Cost(ExprId id) {
    const Expr& expr = At(id);
    switch (expr.kind) {
      case ExprKind::kLiteral:
        // The name of a type costs as much as a variable.
        return Fixed(expr.literal.Is<TypeValue>() ? 1 : 0);
      case ExprKind::kIdent: {
        const SizedName* local = FindLocal(expr.name);
        paths_[Index(id)] = local != nullptr ? local->path : Path{expr.name};
        return Fixed(1);
      }
      case ExprKind::kSelect:
        return SelectCost(id, expr);
      case ExprKind::kCall:
        return CallCost(id, expr);
      case ExprKind::kList:
        return ListCost(id, expr);
      case ExprKind::kMap:
        return MapCost(id, expr);
      case ExprKind::kFold:
        return IsBind(checked_.ast, expr) ? BindCost(id, expr)
                                          : FoldCost(id, expr);
    }
    return {};
  }

  CostRange SelectCost(ExprId id, const Expr& expr) {
    CostRange sum = Cost(expr.target);
    if (expr.test_only) return sum;
    const TypeKind kind = checked_.TypeAt(expr.target).kind;
    if (kind == TypeKind::kMap || kind == TypeKind::kObject ||
        kind == TypeKind::kParam) {
      sum = sum + Fixed(1);
    }
    paths_[Index(id)] = Extended(PathOf(expr.target), expr.name);
    return sum;
  }

  CostRange ListCost(ExprId id, const Expr& expr) {
    CostRange sum;
    SizeRange element = {expr.args.empty() ? 0 : kUnbounded, 0};
    for (const ExprId arg : expr.args) {
      sum = sum + Cost(arg);
      element = cel::Union(element, SizeOrUnknown(arg));
    }
    entry_sizes_[Index(id)] = EntrySize{true, Fixed(1), element};
    return sum + Fixed(kListCost);
  }

  CostRange MapCost(ExprId id, const Expr& expr) {
    CostRange sum;
    SizeRange keys = {expr.args.empty() ? 0 : kUnbounded, 0};
    SizeRange values = keys;
    for (std::size_t i = 0; i + 1 < expr.args.size(); i += 2) {
      sum = sum + Cost(expr.args[i]) + Cost(expr.args[i + 1]);
      keys = cel::Union(keys, SizeOrUnknown(expr.args[i]));
      values = cel::Union(values, SizeOrUnknown(expr.args[i + 1]));
    }
    entry_sizes_[Index(id)] = EntrySize{false, keys, values};
    return sum + Fixed(kMapCost);
  }

  // -- Calls ----------------------------------------------------------------

  CostRange CallCost(ExprId id, const Expr& expr) {
    if (expr.name == "dyn") {
      const CostRange cost = Fixed(1) + Cost(expr.args[0]);
      CopySizes(id, expr.args[0]);
      return cost;
    }
    std::vector<CostRange> costs;
    std::vector<Operand> args;
    for (const ExprId arg : expr.args) {
      costs.push_back(Cost(arg));
      args.push_back(OperandOf(arg));
    }
    if (expr.name == "_?._") return costs[0] + costs[1] + Fixed(1);
    CostRange sum;
    std::optional<Operand> target;
    if (expr.target != kNoExpr) {
      sum = Cost(expr.target);
      target = OperandOf(expr.target);
    }
    // Each of the overloads that fit may be the one that is called.
    CostRange call = {kUnbounded, 0};
    std::optional<SizeRange> result;
    for (const Overload* overload : checked_.overloads[Index(id)]) {
      const CallEstimate estimate = OverloadCost(
          id, overload->id, target ? &*target : nullptr, args, costs);
      call = cel::Union(call, estimate.cost);
      if (estimate.result_size) {
        result = result ? cel::Union(*result, *estimate.result_size)
                        : *estimate.result_size;
      }
      FollowIndex(id, overload->id, result);
      if (!result) result = SizeOf(id);
    }
    if (result) sizes_[Index(id)] = result;
    return sum + call;
  }

  /// For an index into a list or map: sets the path of node `id` and the size
  /// of the element that is found.
  void FollowIndex(ExprId id, std::string_view overload,
                   std::optional<SizeRange>& result) {
    if (overload != "index_list" && overload != "index_map") return;
    const ExprId operand = At(id).args[0];
    const std::optional<EntrySize> entries = EntrySizeOf(operand);
    result = entries ? std::optional(entries->value) : std::nullopt;
    paths_[Index(id)] = Extended(
        PathOf(operand), overload == "index_list" ? "@items" : "@values");
  }

  static CostRange Sum(const std::vector<CostRange>& costs) {
    CostRange sum;
    for (const CostRange& cost : costs) sum = sum + cost;
    return sum;
  }

  CallEstimate OverloadCost(ExprId id, std::string_view overload,
                            const Operand* target,
                            const std::vector<Operand>& args,
                            const std::vector<CostRange>& costs) {
    if (std::optional<CallEstimate> estimate =
            EstimateCall(At(id).name, overload, target, args)) {
      estimate->cost = estimate->cost + Sum(costs);
      return *estimate;
    }
    if (overload == "logical_and" || overload == "logical_or") {
      // If the left operand decides, the right one costs nothing.
      return {{costs[0].min, AddBounded(costs[0].max, costs[1].max)},
              std::nullopt};
    }
    if (overload == "conditional") return ConditionalCost(id, args, costs);
    return ConcatenationCost(id, overload, args, costs);
  }

  CallEstimate ConditionalCost(ExprId id, const std::vector<Operand>& args,
                               const std::vector<CostRange>& costs) {
    const Expr& expr = At(id);
    const std::optional<EntrySize> entries =
        Union(EntrySizeOf(expr.args[1]), EntrySizeOf(expr.args[2]));
    if (entries) entry_sizes_[Index(id)] = entries;
    return {costs[0] + cel::Union(costs[1], costs[2]),
            cel::Union(args[1].size.value_or(kUnknownSize),
                       args[2].size.value_or(kUnknownSize))};
  }

  CallEstimate ConcatenationCost(ExprId id, std::string_view overload,
                                 const std::vector<Operand>& args,
                                 const std::vector<CostRange>& costs) {
    const Expr& expr = At(id);
    const SizeRange size = args[0].size.value_or(kUnknownSize) +
                           args[1].size.value_or(kUnknownSize);
    const std::optional<EntrySize> entries =
        Union(EntrySizeOf(expr.args[0]), EntrySizeOf(expr.args[1]));
    if (entries) entry_sizes_[Index(id)] = entries;
    const CostRange cost =
        overload == "add_list" ? Fixed(1) : size * kStringFactor;
    return {cost + Sum(costs), size};
  }

  // -- Folds ----------------------------------------------------------------

  /// Declares the variable of a fold that holds keys or elements of its range.
  void PushElement(const std::string& name, ExprId range, bool wants_keys,
                   bool single) {
    const std::optional<EntrySize> entries = EntrySizeOf(range);
    const bool is_list = entries
                             ? entries->is_list
                             : checked_.TypeAt(range).kind == TypeKind::kList;
    // With one variable a fold visits the elements of a list or the keys of a
    // map.
    if (single) wants_keys = !is_list;
    std::optional<SizeRange> size;
    if (entries) size = wants_keys ? entries->key : entries->value;
    std::string part = wants_keys ? "@keys" : "@values";
    if (is_list) part = wants_keys ? "@indices" : "@items";
    locals_.push_back(
        {name, Extended(PathOf(range), std::move(part)), size, std::nullopt});
  }

  CostRange FoldCost(ExprId id, const Expr& fold) {
    const ExprId range = fold.args[kRange];
    const ExprId init = fold.args[kInit];
    CostRange sum = Cost(range) + Cost(init);
    PushBound(fold.accumulator, init);
    const bool two = !fold.iter_var2.empty();
    PushElement(fold.iter_var, range, true, !two);
    if (two) PushElement(fold.iter_var2, range, false, false);
    const CostRange round =
        Cost(fold.args[kCondition]) + Cost(fold.args[kStep]);
    locals_.resize(locals_.size() - (two ? 2 : 1));
    sum = sum + Cost(fold.args[kResult]);
    locals_.pop_back();
    const SizeRange rounds = SizeOrUnknown(range);
    if (At(init).kind == ExprKind::kLiteral) {
      if (const auto size = SizeOf(init)) sizes_[Index(id)] = size;
    } else if (At(init).kind == ExprKind::kList ||
               At(init).kind == ExprKind::kMap) {
      sizes_[Index(id)] = rounds;
      const auto entries = EntrySizeOf(fold.args[kStep]);
      if (entries) entry_sizes_[Index(id)] = entries;
    }
    return sum + rounds * round;
  }

  CostRange BindCost(ExprId id, const Expr& fold) {
    CostRange sum = Cost(fold.args[kRange]) + Cost(fold.args[kInit]);
    PushBound(fold.accumulator, fold.args[kInit]);
    sum = sum + Cost(fold.args[kResult]);
    locals_.pop_back();
    CopySizes(id, fold.args[kResult]);
    return sum;
  }

  void PushBound(const std::string& name, ExprId value) {
    locals_.push_back({name, PathOf(value), SizeOf(value), EntrySizeOf(value)});
  }

  // -- Sizes ----------------------------------------------------------------

  Path PathOf(ExprId id) const {
    if (At(id).kind == ExprKind::kIdent) {
      if (const SizedName* local = FindLocal(At(id).name)) return local->path;
    }
    return paths_[Index(id)];
  }

  Operand OperandOf(ExprId id) {
    Operand operand;
    operand.path = PathOf(id);
    if (!operand.path.empty() && operand.path[0] == kAccumulatorName) {
      operand.path.clear();
    }
    operand.type = checked_.types[Index(id)];
    operand.expr = &At(id);
    operand.size = SizeOf(id);
    return operand;
  }

  SizeRange SizeOrUnknown(ExprId id) {
    return SizeOf(id).value_or(kUnknownSize);
  }

  std::optional<SizeRange> SizeOf(ExprId id) {
    if (sizes_[Index(id)]) return sizes_[Index(id)];
    if (const auto written = WrittenSize(At(id))) return written;
    if (const auto permitted = DeviceSize(PathOf(id))) {
      sizes_[Index(id)] = permitted;
      return permitted;
    }
    if (IsScalar(checked_.TypeAt(id))) return Fixed(1);
    if (At(id).kind != ExprKind::kIdent) return std::nullopt;
    const SizedName* local = FindLocal(At(id).name);
    return local != nullptr ? local->size : std::nullopt;
  }

  /// The size of a literal, those of lists and maps included.
  static std::optional<SizeRange> WrittenSize(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLiteral:
        if (expr.literal.Is<TypeValue>()) return std::nullopt;
        return Fixed(cel::SizeOf(expr.literal));
      case ExprKind::kList:
        return Fixed(expr.args.size());
      case ExprKind::kMap:
        return Fixed(expr.args.size() / 2);
      default:
        return std::nullopt;
    }
  }

  std::optional<EntrySize> EntrySizeOf(ExprId id) const {
    if (entry_sizes_[Index(id)]) return entry_sizes_[Index(id)];
    if (At(id).kind != ExprKind::kIdent) return std::nullopt;
    const SizedName* local = FindLocal(At(id).name);
    return local != nullptr ? local->entry_size : std::nullopt;
  }

  void CopySizes(ExprId to, ExprId from) {
    if (const auto size = SizeOf(from)) sizes_[Index(to)] = size;
    if (const auto entries = EntrySizeOf(from)) {
      entry_sizes_[Index(to)] = entries;
    }
  }

  const Checked& checked_;
  std::vector<Path> paths_;
  std::vector<std::optional<SizeRange>> sizes_;
  std::vector<std::optional<EntrySize>> entry_sizes_;
  std::vector<SizedName> locals_;
};

}  // namespace

CostRange EstimateDeviceCost(const Checked& checked) {
  return Estimator(checked).Run();
}

}  // namespace devmgr::cel
