// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// A window of 3 by steps of 2 over a padded axis.
// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.reduce_window"
// CHECK: -> tensor<?xf32, [@"floordiv(n + 1, 2)"]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{
    window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Without padding, fewer elements than a window has give no window at all.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@"max(0, n - 2)"]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Holes in the operand and in the window: 2*n - 1 positions, of which a window spans 4.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@"max(0, max(0, 2*n - 1) - 3)"]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2>, base_dilations = array<i64: 2>, window_dilations = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A static result says how many elements there are.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<3xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2>, padding = dense<1> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// All operands have one shape, and so have all results.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@m]>, %{{.*}}: tensor<?xi32, [@m]>) -> (tensor<?xf32, [@"floordiv(m, 2)"]>, tensor<?xi32, [@"floordiv(m, 2)"]>)
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xi32, [@m]>) -> (tensor<?xf32>, tensor<?xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %zero, %none) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.add %i, %j : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<?xf32, [@n]>, tensor<?xi32, [@m]>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// A number of windows that there never is.
// CHECK: error: stablehlo.reduce_window at line {{[0-9]+}}: the sizes {{.*}}2*n{{.*}} and 5 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"2*n"]>) -> tensor<5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@"2*n"]>, tensor<f32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// Operands that never have one shape.
// CHECK: error: stablehlo.reduce_window at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %zero, %zero) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<f32>, %b: tensor<f32>, %j: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<?xf32, [@"n + 1"]>, tensor<f32>, tensor<f32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0 : tensor<?xf32>
}

// -----

// Windows of a symbolic size, padded so that there are as many as elements and one more.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @stablehlo.dynamic_reduce_window({{.*}} -> tensor<?xf32, [@"n + 1"]>
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@w]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "disc.shape"() {dims = [@w]} : () -> tensor<1xi64>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %pad = "disc.shape"() {dims = [@w, 0]} : () -> tensor<2xi64>
  %p = stablehlo.reshape %pad : (tensor<2xi64>) -> tensor<1x2xi64>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %w, %one, %one, %one, %p) {called_computations = [@sum]}
    : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1x2xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A window as large as what it slides over: there is one, also where it has no elements.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.custom_call @stablehlo.dynamic_reduce_window({{.*}} -> tensor<1xf32>
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %p = stablehlo.constant dense<0> : tensor<1x2xi64>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %w, %one, %one, %one, %p) {called_computations = [@sum]}
    : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1x2xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Parameters that are data are read: a window has at least 0 elements, steps and dilations are at least 1.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 0 : i64, name = "n0"}
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 1 : i64, name = "n1"}
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 1 : i64, name = "n2"}
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 1 : i64, name = "n3"}
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n0 >= 0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n1 >= 1"}
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n2 >= 1"}
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n3 >= 1"}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n3]}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n0]}
// CHECK: -> tensor<?xf32, [@"max(0, floordiv(- max(0, n0*n3 - n3 + 1) + max(0, n*n2 - n2 + 1), n1) + 1)"]>
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>, %w: tensor<1xi32>, %s: tensor<1xi32>, %b: tensor<1xi32>, %d: tensor<1xi32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.constant dense<0> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %w, %s, %b, %d, %p) {called_computations = [@sum]}
    : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Steps of nothing.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: 0 >= 1 must hold and never does
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %none = stablehlo.constant dense<0> : tensor<1xi64>
  %p = stablehlo.constant dense<0> : tensor<1x2xi64>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %one, %none, %one, %one, %p) {called_computations = [@sum]}
    : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1x2xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A window of fewer than no elements.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: - n - 1 >= 0 must hold and never does
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "disc.shape"() {dims = [@"-n - 1"]} : () -> tensor<1xi64>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %p = stablehlo.constant dense<0> : tensor<1x2xi64>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %w, %one, %one, %one, %p) {called_computations = [@sum]}
    : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1x2xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A convolution: the features of the input are those of the kernel, and the result has a position for each window.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "g"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@b, @n, @f]>, %{{.*}}: tensor<3x?x?xf32, [3, @f, @o]>) -> tensor<?x?x?xf32, [@b, @"floordiv(n + 1, 2)", @o]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @n, @f]>, %w: tensor<3x?x?xf32, [3, @g, @o]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?xf32, [@b, @n, @f]>, tensor<3x?x?xf32, [3, @g, @o]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// The axes of operands and result stand where the attributes say.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.convolution{{.*}} -> tensor<?x?x?xf32, [@o, @b, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@f, @b, @n]>, %w: tensor<?x?x1xf32, [@o, @f, 1]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [f, b, 0]x[o, i, 0]->[f, b, 0], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?xf32, [@f, @b, @n]>, tensor<?x?x1xf32, [@o, @f, 1]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Groups of features: the input has as many times the features of the kernel.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@b, @n, @"2*g"]>, %{{.*}}: tensor<1x?x4xf32, [1, @g, 4]>) -> tensor<?x?x4xf32, [@b, @n, 4]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @n, @f]>, %w: tensor<1x?x4xf32, [1, @g, 4]>) -> tensor<?x?x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<?x?x?xf32, [@b, @n, @f]>, tensor<1x?x4xf32, [1, @g, 4]>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Groups of the batch: it is a multiple of their number, and divided by it.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {divisor = 2 : i64, min = 0 : i64, name = "b"}
// CHECK: "disc.constraint"() {origin = "stablehlo.convolution at line {{[0-9]+}}", relation = "mod(b, 2) == 0"}
// CHECK: stablehlo.convolution{{.*}} -> tensor<?x?x4xf32, [@"floordiv(b, 2)", @n, 4]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @n, 3]>, %w: tensor<1x3x4xf32>) -> tensor<?x?x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @n, 3]>, tensor<1x3x4xf32>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Symbolic numbers of groups: the features are multiples of them.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.convolution at line {{[0-9]+}}", relation = "mod(o, g) == 0"}
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@b, @n, @"2*g"]>, %{{.*}}: tensor<1x2x?xf32, [1, 2, @o]>, %{{.*}}: tensor<?xf32, [@g]>)
// CHECK: stablehlo.convolution{{.*}} -> tensor<?x?x?xf32, [@b, @n, @o]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @n, @f]>, %w: tensor<1x2x?xf32, [1, 2, @o]>, %g: tensor<?xf32, [@g]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {disc.groups = [@g, 1], batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?xf32, [@b, @n, @f]>, tensor<1x2x?xf32, [1, 2, @o]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// A number of groups that another op fixes.
// CHECK-LABEL: module attributes {
// CHECK: stablehlo.convolution{{.*}} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<?x?x6xf32, [@b, @n, 6]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @n, @f]>, %w: tensor<1x2x6xf32>, %g: tensor<?xf32, [@g]>, %h: tensor<3xf32>) -> (tensor<?x?x6xf32>, tensor<3xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {disc.groups = [@g, 1], batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?xf32, [@b, @n, @f]>, tensor<1x2x6xf32>) -> tensor<?x?x6xf32>
  %1 = stablehlo.add %g, %h : (tensor<?xf32, [@g]>, tensor<3xf32>) -> tensor<3xf32>
  return %0, %1 : tensor<?x?x6xf32>, tensor<3xf32>
}

// -----

// A symbolic number of groups of the batch.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.convolution{{.*}} -> tensor<3x?x?xf32, [3, @n, @"4*g"]>
func.func @main(%x: tensor<?x?x2xf32, [@"3*g", @n, 2]>, %w: tensor<1x2x?xf32, [1, 2, @"4*g"]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {disc.groups = [1, @g], batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x2xf32, [@"3*g", @n, 2]>, tensor<1x2x?xf32, [1, 2, @"4*g"]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Features that are never a multiple of the number of groups.
// CHECK: error: stablehlo.convolution at line {{[0-9]+}}: {{.*}} == 0 must hold and never does
func.func @main(%x: tensor<?x?x?xf32, [@b, @n, @"4*g"]>, %w: tensor<1x2x?xf32, [1, 2, @"4*g + 1"]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {disc.groups = [@"2*g", 1], batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?xf32, [@b, @n, @"4*g"]>, tensor<1x2x?xf32, [1, 2, @"4*g + 1"]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Negative padding takes no more away than there is.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 3 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.convolution at line {{[0-9]+}}", relation = "n - 3 >= 0"}
// CHECK: stablehlo.convolution{{.*}} -> tensor<?x?x4xf32, [@b, @"n - 3", 4]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @n, 3]>, %w: tensor<1x3x4xf32>) -> tensor<?x?x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[-1, -2]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @n, 3]>, tensor<1x3x4xf32>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Features that the kernel never has.
// CHECK: error: stablehlo.convolution at line {{[0-9]+}}: the sizes 2*f + 1 and 2*g must be equal and never are
func.func @main(%x: tensor<?x?x?xf32, [@b, @n, @"2*f + 1"]>, %w: tensor<1x?x4xf32, [1, @g, 4]>) -> tensor<?x?x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<?x?x?xf32, [@b, @n, @"2*f + 1"]>, tensor<1x?x4xf32, [1, @g, 4]>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// A batch that never can be divided into its groups.
// CHECK: error: stablehlo.convolution at line {{[0-9]+}}: {{.*}} == 0 must hold and never does
func.func @main(%x: tensor<?x?x3xf32, [@"2*b + 1", @n, 3]>, %w: tensor<1x3x4xf32>) -> tensor<?x?x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@"2*b + 1", @n, 3]>, tensor<1x3x4xf32>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Padding by a size of an argument.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "stablehlo.dynamic_conv"{{.*}} -> tensor<?x?x4xf32, [@b, @"n + k", 4]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @n, 3]>, %w: tensor<2x3x4xf32>, %y: tensor<?xf32, [@k]>) -> tensor<?x?x4xf32> {
  %pad = "disc.shape"() {dims = [@k, 1]} : () -> tensor<2xi64>
  %p = stablehlo.reshape %pad : (tensor<2xi64>) -> tensor<1x2xi64>
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>} : (tensor<?x?x3xf32, [@b, @n, 3]>, tensor<2x3x4xf32>, tensor<1x2xi64>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Padding that is data is read, and takes no more away than there is.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_conv at line {{[0-9]+}}", relation = "n1 + n0 + n >= 0"}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n0, @n1]} : (tensor<1x2xi32>) -> ()
// CHECK: "stablehlo.dynamic_conv"{{.*}} -> tensor<?x?x4xf32, [@b, @"max(0, n1 + n0 + n - 1)", 4]>
func.func @main(%x: tensor<?x?x3xf32, [@b, @n, 3]>, %w: tensor<2x3x4xf32>, %p: tensor<1x2xi32>) -> tensor<?x?x4xf32> {
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>} : (tensor<?x?x3xf32, [@b, @n, 3]>, tensor<2x3x4xf32>, tensor<1x2xi32>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Padding that always takes more away than there is.
// CHECK: error: stablehlo.dynamic_conv at line {{[0-9]+}}: -1 >= 0 must hold and never does
func.func @main(%x: tensor<?x?x3xf32, [@b, @n, 3]>, %w: tensor<2x3x4xf32>) -> tensor<?x?x4xf32> {
  %pad = "disc.shape"() {dims = [@"-n", -1]} : () -> tensor<2xi64>
  %p = stablehlo.reshape %pad : (tensor<2xi64>) -> tensor<1x2xi64>
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>} : (tensor<?x?x3xf32, [@b, @n, 3]>, tensor<2x3x4xf32>, tensor<1x2xi64>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// What is scattered has one element for each window, and the result has the operand's shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "m"
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@n]>, %{{.*}}: tensor<?xf32, [@"floordiv(n, 2)"]>) -> tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>, %s: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A source that always has more elements than there are windows.
// CHECK: error: stablehlo.select_and_scatter at line {{[0-9]+}}: the sizes {{.*}} and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"2*n"]>, %s: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@"2*n"]>, tensor<?xf32, [@"n + 1"]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Scale and offset have one element for each feature; mean and variance are results of that size.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@b, @f]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?xf32, [@f]>) -> (tensor<?x?xf32, [@b, @f]>, tensor<?xf32, [@f]>, tensor<?xf32, [@f]>)
func.func @main(%x: tensor<?x?xf32, [@b, @f]>, %s: tensor<?xf32, [@g]>, %o: tensor<?xf32, [@h]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
    : (tensor<?x?xf32, [@b, @f]>, tensor<?xf32, [@g]>, tensor<?xf32, [@h]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// Scale that never has one element for each feature.
// CHECK: error: stablehlo.batch_norm_training at line {{[0-9]+}}: the sizes f + 1 and f must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@b, @f]>, %s: tensor<?xf32, [@"f + 1"]>, %o: tensor<?xf32, [@f]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
    : (tensor<?x?xf32, [@b, @f]>, tensor<?xf32, [@"f + 1"]>, tensor<?xf32, [@f]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// All that goes by feature has one size; the features are along the first axis here.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@f, @n]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?xf32, [@f]>) -> tensor<?x?xf32, [@f, @n]>
func.func @main(%x: tensor<?x?xf32, [@f, @n]>, %s: tensor<?xf32, [@g]>, %o: tensor<?xf32, [@h]>, %m: tensor<?xf32, [@i]>, %v: tensor<?xf32, [@j]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{epsilon = 0.001 : f32, feature_index = 0 : i64}>
    : (tensor<?x?xf32, [@f, @n]>, tensor<?xf32, [@g]>, tensor<?xf32, [@h]>, tensor<?xf32, [@i]>, tensor<?xf32, [@j]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A mean that never has one element for each feature.
// CHECK: error: stablehlo.batch_norm_inference at line {{[0-9]+}}: the sizes 2*f and 3 must be equal and never are
func.func @main(%x: tensor<?x3xf32, [@b, 3]>, %s: tensor<3xf32>, %o: tensor<3xf32>, %m: tensor<?xf32, [@"2*f"]>, %v: tensor<3xf32>) -> tensor<?x3xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
    : (tensor<?x3xf32, [@b, 3]>, tensor<3xf32>, tensor<3xf32>, tensor<?xf32, [@"2*f"]>, tensor<3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// A gradient has the shape of the operand, and its parts by feature one size.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@b, @f]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?xf32, [@f]>, %{{.*}}: tensor<?x?xf32, [@b, @f]>) -> (tensor<?x?xf32, [@b, @f]>, tensor<?xf32, [@f]>, tensor<?xf32, [@f]>)
func.func @main(%x: tensor<?x?xf32, [@b, @f]>, %s: tensor<?xf32, [@g]>, %m: tensor<?xf32, [@h]>, %v: tensor<?xf32, [@i]>, %d: tensor<?x?xf32, [@c, @j]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %d) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
    : (tensor<?x?xf32, [@b, @f]>, tensor<?xf32, [@g]>, tensor<?xf32, [@h]>, tensor<?xf32, [@i]>, tensor<?x?xf32, [@c, @j]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// A gradient that never has the operand's shape.
// CHECK: error: stablehlo.batch_norm_grad at line {{[0-9]+}}: the sizes b + 1 and b must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@b, @f]>, %s: tensor<?xf32, [@f]>, %m: tensor<?xf32, [@f]>, %v: tensor<?xf32, [@f]>, %d: tensor<?x?xf32, [@"b + 1", @f]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %d) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
    : (tensor<?x?xf32, [@b, @f]>, tensor<?xf32, [@f]>, tensor<?xf32, [@f]>, tensor<?xf32, [@f]>, tensor<?x?xf32, [@"b + 1", @f]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}
