// SPDX-License-Identifier: Apache-2.0
//
// Runs google/cel-spec's tests of the language (test/data/cel-spec). Prints how
// many passed of those that apply, and why the others do not apply.
#include <absl/strings/escaping.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cel/cel_spec_dir.h"
#include "cel/compare.h"
#include "cel/compiled.h"
#include "cel/double_text.h"
#include "cel/evaluator.h"

namespace devmgr::cel {
namespace {

using Json = nlohmann::json;

/// Thrown when a test does not apply, with the reason.
struct Skip {
  std::string reason;
};

constexpr std::string_view kMessages = "about protobuf messages or enums";

/// Tests with an answer that differs from ours on purpose. `test` is the
/// beginning of FILE/SECTION/NAME.
struct Deviation {
  std::string_view test;
  std::string_view reason;
};
constexpr std::string_view kZones = "wants the time zone database";
constexpr std::string_view kRanges =
    "wants durations of more than 64 bits of nanoseconds";
constexpr std::string_view kVersion =
    "of a version of the strings extension that Kubernetes does not use";
constexpr std::string_view kUpstream =
    "cel-go 0.29, and so Kubernetes, gives another answer, which is ours";
constexpr auto kDeviations = std::to_array<Deviation>({
    {"fields/qualified_identifier_resolution/map_value_repeat_key", kUpstream},
    {"optionals/optionals/map_optional_of_select_has", kUpstream},
    {"optionals/optionals/map_optional_none_select", kUpstream},
    {"optionals/optionals/map_optional_of_select", kUpstream},
    {"optionals/optionals/map_optional_select_has", kUpstream},
    {"string_ext/reverse/", kVersion},
    {"string_ext/value_errors/indexof_out_of_range", kUpstream},
    {"string_ext/value_errors/lastindexof_out_of_range", kUpstream},
    {"timestamps/duration_conversions/toString_duration_m", kRanges},
    {"timestamps/duration_conversions/from_string_m", kRanges},
    {"timestamps/timestamp_arithmetic/add_max_duration_to_min_time", kRanges},
    {"timestamps/timestamp_arithmetic/subtract_max_duration_from_max_time",
     kRanges},
    {"timestamps/timestamp_arithmetic/add_duration_to_duration_max", kRanges},
    {"timestamps/timestamp_arithmetic/subtract_duration_from_duration_min",
     kRanges},
    {"timestamps/timestamp_selectors_tz/getDate", kZones},
    {"timestamps/timestamp_selectors_tz/getDayOfMonth_name_", kZones},
    {"timestamps/timestamp_selectors_tz/getDayOfYear", kZones},
    {"timestamps/timestamp_selectors_tz/getMinutes", kZones},
    {"timestamps/timestamp_range/sub_time_duration_", kRanges},
    {"type_deduction/legacy_nullable_types/"
     "null_assignable_to_abstract_parameter_candidate",
     kUpstream},
    {"type_deduction/type_decay/", kUpstream},
});

std::optional<std::string_view> DeviationOf(const std::string& test) {
  for (const Deviation& deviation : kDeviations) {
    if (test.starts_with(deviation.test)) return deviation.reason;
  }
  return std::nullopt;
}

std::int64_t Number(const Json& text) {
  return std::stoll(text.get<std::string>());
}

TypeRef TypeByName(const std::string& name) {
  if (const auto known = FindTypeName(name)) return *known;
  throw Skip{std::string(kMessages)};
}

Value ObjectValue(const Json& object) {
  const std::string type = object["type"];
  if (type == "google.protobuf.Duration") {
    return Value::Of(Duration{Number(object["seconds"]) * 1'000'000'000 +
                              Number(object["nanos"])});
  }
  if (type == "google.protobuf.Timestamp") {
    return Value::Of(
        Timestamp{Number(object["seconds"]),
                  static_cast<std::int32_t>(Number(object["nanos"]))});
  }
  throw Skip{std::string(kMessages)};
}

Value ValueOf(const Json& json) {
  const Json::const_iterator only = json.begin();
  const std::string& kind = only.key();
  const Json& payload = only.value();
  if (kind == "null_value") return Value();
  if (kind == "bool_value") return Value::Bool(payload == "true");
  if (kind == "int64_value") return Value::Int(Number(payload));
  if (kind == "uint64_value") {
    return Value::Uint(std::stoull(payload.get<std::string>()));
  }
  if (kind == "double_value") {
    return Value::Double(ReadDouble(payload.get<std::string>()).value());
  }
  if (kind == "string_value") return Value::Text(payload);
  if (kind == "bytes_value") {
    std::string data;
    absl::Base64Unescape(payload.get<std::string>(), &data);
    return Value::OfBytes(data);
  }
  if (kind == "type_value") return Value::OfType(TypeByName(payload));
  if (kind == "object_value") return ObjectValue(payload);
  if (kind == "list_value") {
    std::vector<Value> elements;
    for (const Json& element : payload) elements.push_back(ValueOf(element));
    return Value::ListOf(elements);
  }
  if (kind == "map_value") {
    auto map = std::make_shared<MapObject>();
    for (const Json& entry : payload) {
      map->Insert(ValueOf(entry[0]), ValueOf(entry[1]));
    }
    return Value::Of(Map(map));
  }
  throw Skip{std::string(kMessages)};
}

/// Whether both values have one type and are equal. NaN is the same as NaN.
bool Same(const Value& a, const Value& b) {
  if (a.data().index() != b.data().index()) return false;
  const auto* ad = a.As<double>();
  if (ad != nullptr && std::isnan(*ad)) return std::isnan(*b.As<double>());
  if (const auto* list = a.As<List>()) {
    const auto& other = **b.As<List>();
    return std::equal((*list)->elements.begin(), (*list)->elements.end(),
                      other.elements.begin(), other.elements.end(), Same);
  }
  if (const auto* map = a.As<Map>()) {
    const auto& other = **b.As<Map>();
    return (*map)->entries().size() == other.entries().size() &&
           std::all_of((*map)->entries().begin(), (*map)->entries().end(),
                       [&](const MapEntry& entry) {
                         const Value* found = other.Find(entry.key);
                         return found != nullptr && Same(entry.value, *found);
                       });
  }
  Work work;
  return Equal(a, b, work);
}

Environment EnvironmentOf(const Json& test) {
  Environment environment;
  environment.homogeneous_literals = false;
  environment.parse.quoted_fields = true;
  environment.parse.macros = !test.contains("disable_macros");
  environment.container = test.value("container", "");
  for (const Json& entry : test.value("type_env", Json::array())) {
    if (entry.contains("function")) throw Skip{"declares functions"};
    const std::string type = entry["type"];
    for (const std::string_view foreign :
         {"message_type", "wrapper", "any", "abstract", "type_param"}) {
      if (type.find(foreign) != std::string::npos) {
        throw Skip{std::string(kMessages)};
      }
    }
    environment.variables[entry["name"]] = ParseType(type);
  }
  return environment;
}

void SkipMessages(const Json& test) {
  const std::string text = test.dump();
  for (const std::string_view foreign :
       {"TestAllTypes", "GlobalEnum", "google.protobuf.Any", "Value{",
        "google.protobuf.Struct", "NullValue", "NestedTestAllTypes",
        "google.protobuf.BoolValue", "google.protobuf.Int", "message_type"}) {
    if (text.find(foreign) != std::string::npos) {
      throw Skip{std::string(kMessages)};
    }
  }
}

/// Our answer and the expected one if they differ, else empty.
std::string WrongAnswer(const Json& test) {
  SkipMessages(test);
  if (test.contains("disable_check")) {
    throw Skip{"wants to be evaluated without having been checked"};
  }
  const Environment environment = EnvironmentOf(test);
  const std::string text = test["expr"];
  const bool wants_error = test.contains("error");
  const auto problem_with = [&](const Problem& problem) {
    return wants_error ? std::string() : Render(text, problem);
  };
  const auto checked = CheckText(text, environment);
  if (const auto* problem = std::get_if<Problem>(&checked)) {
    return problem_with(*problem);
  }
  const auto& expression = std::get<Checked>(checked);
  const std::string type = Describe(expression.TypeAt(expression.ast.root));
  if (test.contains("type") && test["type"] != type) {
    return fmt::format("type is {}, not {}", type,
                       test["type"].get<std::string>());
  }
  if (test.contains("check_only")) return "";
  auto plan = MakePlan(expression);
  if (const auto* problem = std::get_if<Problem>(&plan)) {
    return problem_with(*problem);
  }
  std::vector<Value> globals;
  for (const std::string& name : std::get<Plan>(plan).globals) {
    const Json bindings = test.value("bindings", Json::object());
    globals.push_back(bindings.contains(name)
                          ? ValueOf(bindings[name])
                          : Value::Failed("no such attribute(s): " + name));
  }
  EvaluationOptions options;
  options.strict_presence = true;
  const Evaluation evaluation =
      Evaluate(std::get<Plan>(plan), globals, options);
  const Value& value = evaluation.value;
  if (wants_error) {
    return value.IsError() ? "" : "no error but " + Describe(value);
  }
  const Value wanted =
      test.contains("value") ? ValueOf(test["value"]) : Value::Bool(true);
  return Same(value, wanted)
             ? ""
             : Describe(value) + " instead of " + Describe(wanted);
}

/// The results of all files, which are printed at the end.
struct Totals {
  int passed = 0;
  int failed = 0;
  std::map<std::string, int> skipped;
};

class CelSpecTest : public testing::TestWithParam<std::string_view> {
 protected:
  static void TearDownTestSuite() {
    fmt::print("cel-spec: passed {} of {} that apply, failed {}\n",
               totals_.passed, totals_.passed + totals_.failed, totals_.failed);
    for (const auto& [reason, count] : totals_.skipped) {
      fmt::print("  skipped {}: {}\n", count, reason);
    }
    totals_ = {};
  }

  /// Runs one test and counts it.
  static void Try(const std::string& name, const Json& test) {
    if (const auto reason = DeviationOf(name)) {
      ++totals_.skipped[std::string(*reason)];
      return;
    }
    try {
      const std::string wrong = WrongAnswer(test);
      ++(wrong.empty() ? totals_.passed : totals_.failed);
      EXPECT_EQ(wrong, "") << name << ": " << test["expr"];
    } catch (const Skip& skip) {
      ++totals_.skipped[skip.reason];
    }
  }

  static inline Totals totals_;
};

// AL-077
TEST_P(CelSpecTest, HasTheAnswersOfTheSpecification) {
  const std::string file(GetParam());
  std::ifstream stream(std::string(DEVMGR_CEL_SPEC_DIR) + "/" + file + ".json");
  const Json sections = Json::parse(stream);
  const int before = totals_.passed;
  for (const Json& section : sections) {
    for (const Json& test : section["tests"]) {
      Try(fmt::format("{}/{}/{}", file, section["name"].get<std::string>(),
                      test["name"].get<std::string>()),
          test);
    }
  }
  EXPECT_GT(totals_.passed, before) << "the file has no test that applies";
}

INSTANTIATE_TEST_SUITE_P(
    Files, CelSpecTest,
    testing::Values("basic", "bindings_ext", "comparisons", "conversions",
                    "fields", "fp_math", "integer_math", "lists", "lists_ext",
                    "logic", "macros", "macros2", "namespace", "optionals",
                    "parse", "plumbing", "sets_ext", "string", "string_ext",
                    "timestamps", "type_deduction"),
    [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace devmgr::cel
