// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// As many of the largest elements as the second operand says, which is at most what there is.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n >= k"}
// CHECK-NEXT: func.func @main
// CHECK: stablehlo.custom_call @stablehlo.dynamic_top_k({{.*}} -> (tensor<?x?xf32, [@b, @k]>, tensor<?x?xi32, [@b, @k]>)
func.func @main(%x: tensor<?x?xf32, [@b, @n]>, %y: tensor<?xf32, [@k]>) -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %k = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32, [@k]>) -> tensor<i32>
  %count = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %count)
    : (tensor<?x?xf32, [@b, @n]>, tensor<1xi32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}

// -----

// Half of the elements are always there: nothing is left to check.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.custom_call @stablehlo.dynamic_top_k({{.*}} -> (tensor<?xf32, [@"floordiv(n, 2)"]>, tensor<?xi32, [@"floordiv(n, 2)"]>)
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xi32>) {
  %count = "disc.shape"() {dims = [@"floordiv(n, 2)"]} : () -> tensor<1xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %count)
    : (tensor<?xf32, [@n]>, tensor<1xi64>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// A count that is a number makes the size at least that.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 3 : i64, name = "n"}
// CHECK: stablehlo.custom_call @stablehlo.dynamic_top_k({{.*}} -> (tensor<3xf32>, tensor<3xi32>)
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xi32>) {
  %count = stablehlo.constant dense<3> : tensor<1xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %count)
    : (tensor<?xf32, [@n]>, tensor<1xi64>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// More of the largest elements than there ever are.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: n >= n + 1 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xi32>) {
  %count = "disc.shape"() {dims = [@"n + 1"]} : () -> tensor<1xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %count)
    : (tensor<?xf32, [@n]>, tensor<1xi64>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// The count of an approximate top-k without operands for its shapes is in the result's type; other sizes stay.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @ApproxTopK({{.*}} -> (tensor<?x5xf32, [@b, 5]>, tensor<?x5xi32, [@b, 5]>)
func.func private @above(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x9xf32, [@b, 9]>, %i: tensor<?x9xi32, [@b, 9]>) -> (tensor<?x5xf32>, tensor<?x5xi32>) {
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %least, %none) {
    called_computations = [@above], mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 5 : i64}}
    : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>, tensor<f32>, tensor<i32>) -> (tensor<?x5xf32>, tensor<?x5xi32>)
  return %0#0, %0#1 : tensor<?x5xf32>, tensor<?x5xi32>
}

// -----

// An approximate top-k whose count nothing states is not compiled.
// CHECK: error: 1 unsupported construct(s):
// CHECK: stablehlo.custom_call {{.*}}: its size depends on the elements of a tensor
func.func private @above(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.custom_call @ApproxTopK(%x, %least) {
    called_computations = [@above], mhlo.backend_config = {reduction_dim = 0 : i64}}
    : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// With operands for its shapes, each result of an approximate top-k has the sizes of its own, within the operand.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n >= k"}
// CHECK: stablehlo.custom_call @stablehlo.dynamic_approx_top_k({{.*}} -> (tensor<?x?xf32, [@b, @k]>, tensor<?x?xi32, [@b, @k]>)
func.func private @above(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x?xf32, [@b, @n]>, %i: tensor<?x?xi32, [@b, @n]>, %y: tensor<?xf32, [@k]>) -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %shape = "disc.shape"() {dims = [@b, @k]} : () -> tensor<2xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %least, %none, %shape, %shape) {
    called_computations = [@above], indices_of_shape_operands = dense<[4, 5]> : tensor<2xi64>,
    mhlo.backend_config = {reduction_dim = 1 : i64}}
    : (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>, tensor<f32>, tensor<i32>, tensor<2xi64>, tensor<2xi64>)
    -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}

// -----

// More than there ever is of an approximate top-k.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: n >= 2*n + 1 must hold and never does
func.func private @above(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %shape = "disc.shape"() {dims = [@"2*n + 1"]} : () -> tensor<1xi64>
  %0 = stablehlo.custom_call @ApproxTopK(%x, %least, %shape) {
    called_computations = [@above], indices_of_shape_operands = dense<[2]> : tensor<1xi64>,
    mhlo.backend_config = {reduction_dim = 0 : i64}}
    : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// As many elements as are asked for have to be there.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 4 : i64, name = "n"}
func.func private @before(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func public @main(%x: tensor<?xf32, [@n]>, %i: tensor<?xi32, [@n]>, %u: tensor<f32>, %v: tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %u, %v) {called_computations = [@before], mhlo.backend_config = {reduction_dim = 0 : i64, top_k = 4 : i64}} : (tensor<?xf32, [@n]>, tensor<?xi32, [@n]>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}

// -----

// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: it has 2 results, not 1
func.func @main(%x: tensor<?x9xf32, [@b, 9]>) -> tensor<?x4xf32> {
  %k = stablehlo.constant dense<4> : tensor<i64>
  %0 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) : (tensor<?x9xf32, [@b, 9]>, tensor<i64>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// What an approximate top-k selects from has equal sizes.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @ApproxTopK({{.*}} : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>, tensor<f32>, tensor<i32>)
func.func private @above(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x9xf32, [@b, 9]>, %i: tensor<?x9xi32, [@c, 9]>) -> (tensor<?x5xf32>, tensor<?x5xi32>) {
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %least, %none) {
    called_computations = [@above], mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 5 : i64}}
    : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@c, 9]>, tensor<f32>, tensor<i32>) -> (tensor<?x5xf32>, tensor<?x5xi32>)
  return %0#0, %0#1 : tensor<?x5xf32>, tensor<?x5xi32>
}

// -----

// A count that is an attribute makes the size at least that.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 3 : i64, name = "n"}
// CHECK: stablehlo.custom_call @mhlo.topk({{.*}} -> (tensor<?x3xf32, [@b, 3]>, tensor<?x3xi32, [@b, 3]>)
func.func @main(%x: tensor<?x?xf32, [@b, @n]>) -> (tensor<?x3xf32>, tensor<?x3xi32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = true}}
    : (tensor<?x?xf32, [@b, @n]>) -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32>
}
