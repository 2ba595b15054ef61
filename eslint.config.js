import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["src/holotrace/web/**/*.js"],
    languageOptions: { globals: { ...globals.browser, DashRenderer: "readonly" } },
    rules: {
      curly: "error",
      eqeqeq: "error",
      "no-shadow": "error",
      "no-var": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  { files: ["tests/web/assets/*.js"], languageOptions: { globals: globals.node } },
];
