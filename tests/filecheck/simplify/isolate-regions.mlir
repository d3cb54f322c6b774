// RUN: opt --pass-pipeline='annotate,isolate-regions' --split-input-file %s | filecheck %s

// The body of a reduction gets one copy of a constant that it uses twice; its own stay where they are.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?xf32, [@b]> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [1] : (tensor<?x4xf32, [@b, 4]>, tensor<f32>) -> tensor<?xf32, [@b]>
   reducer(%p: tensor<f32>, %q: tensor<f32>) {
    %three = stablehlo.constant dense<3.0> : tensor<f32>
    %1 = stablehlo.maximum %q, %half : tensor<f32>
    %2 = stablehlo.multiply %1, %half : tensor<f32>
    %3 = stablehlo.minimum %2, %three : tensor<f32>
    %4 = stablehlo.add %p, %3 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce(
// CHECK-NEXT: reducer(%{{.*}}: tensor<f32>, %[[Q:.*]]: tensor<f32>)
// CHECK-NEXT: %[[HALF:.*]] = stablehlo.constant dense<5.000000e-01>
// CHECK-NEXT: %[[THREE:.*]] = stablehlo.constant dense<3.000000e+00>
// CHECK-NEXT: %[[A:.*]] = stablehlo.maximum %[[Q]], %[[HALF]]
// CHECK-NEXT: %[[B:.*]] = stablehlo.multiply %[[A]], %[[HALF]]
// CHECK-NEXT: stablehlo.minimum %[[B]], %[[THREE]]

// -----

// A branch may use anything from outside and gets no copy; the body of a sort within it does.
func.func @main(%x: tensor<?xi32, [@b]>, %n: tensor<i32>, %go: tensor<i1>) -> (tensor<?xi32, [@b]>, tensor<i32>) {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0:2 = "stablehlo.if"(%go) ({
    %1 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %3 = stablehlo.remainder %p, %two : tensor<i32>
      %4 = stablehlo.remainder %q, %two : tensor<i32>
      %5 = stablehlo.compare LT, %3, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }) : (tensor<?xi32, [@b]>) -> tensor<?xi32, [@b]>
    %2 = stablehlo.multiply %n, %two : tensor<i32>
    stablehlo.return %1, %2 : tensor<?xi32, [@b]>, tensor<i32>
  }, {
    stablehlo.return %x, %two : tensor<?xi32, [@b]>, tensor<i32>
  }) : (tensor<i1>) -> (tensor<?xi32, [@b]>, tensor<i32>)
  return %0#0, %0#1 : tensor<?xi32, [@b]>, tensor<i32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[OUTER:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: "stablehlo.if"(%arg2)
// CHECK-NEXT: "stablehlo.sort"(%arg0)
// CHECK-NEXT: ^bb0(%[[P:.*]]: tensor<i32>, %[[Q:.*]]: tensor<i32>):
// CHECK-NEXT: %[[TWO:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: stablehlo.remainder %[[P]], %[[TWO]]
// CHECK-NEXT: stablehlo.remainder %[[Q]], %[[TWO]]
// CHECK-NOT: stablehlo.constant
// CHECK: stablehlo.multiply %arg1, %[[OUTER]]
// CHECK: stablehlo.return %arg0, %[[OUTER]]

// -----

// The bounds of a loop's counter are constants from outside, and stay there: conditions and bodies of loops get none.
func.func @main(%x: tensor<?xf32, [@b]>) -> tensor<?xf32, [@b]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<?xf32, [@b]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %t = stablehlo.tanh %acc : tensor<?xf32, [@b]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %t : tensor<i32>, tensor<?xf32, [@b]>
  }
  return %r#1 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[TEN:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT: stablehlo.while(%[[I:.*]] = %{{.*}}, %{{.*}} = %arg0)
// CHECK-NOT: stablehlo.constant
// CHECK: stablehlo.compare LT, %{{.*}}, %[[TEN]]
// CHECK: stablehlo.add %[[I]], %[[ONE]]
// CHECK-NOT: stablehlo.constant
// CHECK: return
