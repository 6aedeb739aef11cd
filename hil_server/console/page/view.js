// One drawn thing of a page, as a NiceGUI element: live.js does the rest.
export default {
  template: `<div class="hil-view"></div>`,
  props: { kind: String, options: Object },
  async mounted() {
    this.live = await import("/hil/live.js");
    this.live.attach(this.$el, this.kind, this.options);
  },
  beforeUnmount() {
    this.live?.detach(this.$el);
  },
};
