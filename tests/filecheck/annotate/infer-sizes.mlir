// RUN: opt --pass-pipeline='set-argument-sizes,infer-sizes' --split-input-file %s | filecheck %s

// Operands of a sum are of one size, which has one symbol in all types; the other symbol is gone.
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %y : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "arg0_d0"}
// CHECK-NOT: "disc.symbol"()
// CHECK: func.func @main(%arg0: tensor<?x4xf32, [@arg0_d0, 4]>, %arg1: tensor<?x4xf32, [@arg0_d0, 4]>) -> tensor<?x4xf32, [@arg0_d0, 4]> {
// CHECK-NEXT: stablehlo.add %arg0, %arg1 : tensor<?x4xf32, [@arg0_d0, 4]>

// -----

// Arithmetic on sizes gives an expression, which is declared; it stays as it is, and a size with nothing to do with it keeps its symbol.
func.func @main(%x: tensor<?x?xf32, [@b, @s]>, %y: tensor<?xf32, [@c]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32, [@b, @s]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32, [@b, @s]>) -> tensor<i32>
  %0 = stablehlo.multiply %n, %m : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %x, %1 : (tensor<?x?xf32, [@b, @s]>, tensor<1xi32>) -> tensor<?xf32>
  %3 = stablehlo.tanh %y : (tensor<?xf32, [@c]>) -> tensor<?xf32>
  return %2, %3 : tensor<?xf32>, tensor<?xf32>
}
// CHECK-LABEL: module attributes {
// CHECK: "disc.dim"() {min = 0 : i64, name = "b*s"}
// CHECK-NOT: disc.constraint
// CHECK: func.func @main({{.*}}) -> (tensor<?xf32, [@"b*s"]>, tensor<?xf32, [@c]>) {
// CHECK: stablehlo.multiply
// CHECK: stablehlo.dynamic_reshape {{.*}} -> tensor<?xf32, [@"b*s"]>
// CHECK-NEXT: stablehlo.tanh %arg1 : tensor<?xf32, [@c]>

// -----

// A size that is an element of an argument is read from it, into a symbol, and each call checks that it fits.
func.func @main(%x: tensor<?xf32, [@b]>, %n: tensor<1xi32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %n : (tensor<?xf32, [@b]>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: module attributes {
// CHECK: "disc.symbol"() {data, {{.*}}name = "n0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_reshape at line {{[0-9]+}}", relation = "b == n0"}
// CHECK: func.func @main({{.*}}) -> tensor<?xf32, [@b]> {
// CHECK-NEXT: "disc.bind"(%arg1) {symbols = [@n0]} : (tensor<1xi32>) -> ()

// -----

// Sizes that are never equal are refused.
// CHECK: error: stablehlo.add at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : (tensor<?xf32, [@n]>, tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
