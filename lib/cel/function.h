// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/type.h"
#include "cel/value.h"
#include "cel/work.h"

namespace devmgr::cel {

/// The arguments of a call, the target of a member first. None is an error.
struct Args {
  std::span<const Value> values;
  Work& work;

  const Value& operator[](std::size_t i) const { return values[i]; }
  std::size_t size() const { return values.size(); }
  template <typename T>
  const T& As(std::size_t i) const {
    return *values[i].template As<T>();
  }
  const std::string& Text(std::size_t i) const { return values[i].text(); }
};

/// Is called only with arguments that fit the overload's types: the outermost
/// kind of each is checked before.
using Implementation = Value (*)(const Args&);
/// Of an overload that has none: the evaluator does not need all arguments.
constexpr Implementation kByEvaluator = nullptr;

struct Overload {
  std::string id;
  bool is_member = false;
  std::vector<TypeRef> params;  ///< The target of a member first.
  TypeRef result;
  Implementation run = kByEvaluator;
};

struct FunctionDeclaration {
  std::string name;
  std::vector<Overload> overloads;
};

/// A row of the tables of functions. `signature` is `string.(int) -> bool` for
/// a member, else `(string, int) -> bool`.
struct FunctionRow {
  std::string_view name;
  std::string_view overload;
  std::string_view signature;
  Implementation run;
};

/// All functions. Immutable.
class Library {
 public:
  explicit Library(std::initializer_list<std::span<const FunctionRow>> tables);

  /// Null when there is none.
  const FunctionDeclaration* Find(std::string_view name) const;
  const std::map<std::string, FunctionDeclaration, std::less<>>& functions()
      const {
    return functions_;
  }

 private:
  std::map<std::string, FunctionDeclaration, std::less<>> functions_;
};

/// The language's own, and those that Kubernetes adds for device selectors.
const Library& KubernetesLibrary();

/// Whether `function` chooses its implementation by the values it gets, rather
/// than among the overloads that the checker found to fit. It depends on how
/// cel-go binds it, and decides what a call with an argument of unknown type
/// yields and costs.
bool ChoosesByValue(std::string_view function);

/// Names that Kubernetes has and this library does not.
bool IsUnsupportedFunction(std::string_view name);

// The tables, one a file.
std::span<const FunctionRow> OperatorFunctions();
std::span<const FunctionRow> ComparisonFunctions();
std::span<const FunctionRow> ConversionFunctions();
std::span<const FunctionRow> TimeFunctions();
std::span<const FunctionRow> StringFunctions();
std::span<const FunctionRow> RegexFunctions();
std::span<const FunctionRow> ListFunctions();
std::span<const FunctionRow> SetFunctions();
std::span<const FunctionRow> OptionalFunctions();
std::span<const FunctionRow> KubernetesFunctions();

/// `no such overload: NAME`.
Value NoSuchOverload(std::string_view function);
/// A list, or the error that it is too much work.
Value MakeList(const Args& args, std::vector<Value> elements);
/// A string, likewise.
Value MakeText(const Args& args, std::string text);
Value WorkIsOver();

}  // namespace devmgr::cel
