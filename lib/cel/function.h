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

/// The arguments of a call. The target of a member function is the first one.
/// None of them is an error.
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

/// Computes the result of a call. The evaluator has checked that each argument
/// has the kind of the overload's parameter; the types of the elements of lists
/// and maps are not checked.
using Implementation = Value (*)(const Args&);
/// Marks an overload without an implementation: an operator such as `&&`, which
/// the evaluator carries out itself since it does not need all operands.
constexpr Implementation kByEvaluator = nullptr;

struct Overload {
  std::string id;
  bool is_member = false;
  /// The target of a member function is the first one.
  std::vector<TypeRef> params;
  TypeRef result;
  Implementation run = kByEvaluator;
};

struct FunctionDeclaration {
  std::string name;
  std::vector<Overload> overloads;
};

/// A row of the tables of functions. The signature of a member function is
/// written `string.(int) -> bool`, that of another one `(string, int) -> bool`.
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

  /// The declaration of a function, or null.
  const FunctionDeclaration* Find(std::string_view name) const;
  const std::map<std::string, FunctionDeclaration, std::less<>>& functions()
      const {
    return functions_;
  }

 private:
  std::map<std::string, FunctionDeclaration, std::less<>> functions_;
};

/// The functions of the language and those that Kubernetes adds for device
/// selectors.
const Library& KubernetesLibrary();

/// Whether a call of `function` selects its implementation by the values of the
/// arguments, instead of among the overloads that the checker has found to fit.
/// In cel-go it depends on how the function is bound. It decides the value and
/// the cost of a call with an argument of unknown type.
bool ChoosesByValue(std::string_view function);

/// Whether `name` is a function of Kubernetes that this library does not have.
bool IsUnsupportedFunction(std::string_view name);

// The tables of functions. Each is in the file that is named after it.
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

/// The error `no such overload: NAME`.
Value NoSuchOverload(std::string_view function);
/// A list of `elements`, or the error that making it exceeds the limit of work.
Value MakeList(const Args& args, std::vector<Value> elements);
/// A string, or the same error.
Value MakeText(const Args& args, std::string text);
/// The error that an operation exceeds the limit of work. Its message is never
/// shown: the evaluation ends with kWorkLimit.
Value WorkIsOver();

}  // namespace devmgr::cel
